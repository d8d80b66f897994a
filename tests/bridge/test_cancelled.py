"""Requests that are cancelled wherever they wait leave nothing behind. `REQUESTS=…` says how many."""

from __future__ import annotations

import os
import threading

import pytest
from harness import UVICORN, Client, ClosedError, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="what is counted are objects of ours")

FEW, MANY = 500, int(os.environ.get("REQUESTS", "10000"))
DRIVERS, CONNECTIONS = 4, 8
# What the count itself needs of any type.
SPARE = 8


def test_hundreds_of_requests_cancelled_at_random_awaits_leave_nothing_behind(loop: str) -> None:
    cancel(loop, FEW)


@pytest.mark.soak
@pytest.mark.combinations
@pytest.mark.timeout(900)
def test_thousands_of_requests_cancelled_at_random_awaits_leave_nothing_behind(loop: str) -> None:
    cancel(loop, MANY)


def cancel(loop: str, count: int) -> None:
    # A cancellation that a timeout has taken back on its way out is an error like any other.
    with Server("cancel_app:app", "--loop", loop, "--no-access-log", allow=["Traceback"]) as server:
        tasks = server.ask("/left?tasks=100").json()["tasks"]
        run(server, range(-200, 0))
        before: dict[str, int] = server.ask(f"/left?tasks={tasks}").json()
        run(server, range(count))
        after: dict[str, int] = server.ask(f"/left?tasks={tasks}").json()
        assert server.ask("/came-to").json() == {"begun": count + 200, "cancelled": count + 200}
        server.stop()
        for complaint in ("Cannot enter", "was destroyed", "never retrieved", "a callback"):
            assert complaint not in server.stderr, server.stderr
    grown = {name: now - before.get(name, 0) for name, now in after.items() if now > before.get(name, 0)}
    print(f"{count} cancelled; more than before: {grown}; now: {after}")
    assert {name: more for name, more in grown.items() if more > SPARE} == {}


def run(server: Server, seeds: range) -> None:
    """Each seed is one request; the connections have one each at a time."""
    problems: list[str] = []

    def drive(driver: int) -> None:
        mine = list(seeds)[driver::DRIVERS]
        clients = [server.connect(timeout=60) for _ in range(CONNECTIONS)]
        try:
            for first in range(0, len(mine), CONNECTIONS):
                batch = list(zip(range(CONNECTIONS), mine[first : first + CONNECTIONS], strict=False))
                for place, seed in batch:
                    clients[place].send(request(f"/cancelled?seed={seed}", method="POST", body=b"body"))
                for place, _ in batch:
                    if not goes_on(clients[place]):
                        clients[place].close()
                        clients[place] = server.connect(timeout=60)
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")
        for client in clients:
            client.close()

    drivers = [threading.Thread(target=drive, args=(number,)) for number in range(DRIVERS)]
    for thread in drivers:
        thread.start()
    for thread in drivers:
        thread.join()
    assert problems == []


def goes_on(client: Client) -> bool:
    """Reads what came of a request: an answer, or the early end of one that had begun."""
    try:
        return not client.read_response(method="POST").closes
    except ClosedError:
        return False
