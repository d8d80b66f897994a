"""Requests of every kind while threads fight for the GIL: nobody collides, nobody is lost.

`SECONDS=…` says how long the long one takes.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter

import pytest
from harness import UVICORN, Client, Server, request

SECONDS, LONG_SECONDS = 5.0, float(os.environ.get("SECONDS", "60"))
CONNECTIONS, DRIVERS, HOGS = 100, 4, 4
UPLOAD = b"x" * 200_000
KINDS = [
    *("plain", "stream", "upload", "sleep", "group", "thread"),
    *("disconnect", "body", "spawn", "timeout", "receive"),
]
COMPLAINTS = ("Cannot enter", "ERROR", "Exception", "WARNING")
# Four threads that burn the GIL, on a machine that is busy with others, hold the loop for that long.
HELD = "The loop has been held for "


@pytest.mark.runtimes
@pytest.mark.pairwise
@pytest.mark.timeout(SECONDS + 150)
def test_a_hundred_connections_among_threads_that_burn_the_gil(loop: str) -> None:
    burn(loop, SECONDS)


@pytest.mark.soak
@pytest.mark.combinations
@pytest.mark.timeout(LONG_SECONDS + 300)
def test_a_hundred_connections_among_threads_that_burn_the_gil_for_long(loop: str) -> None:
    burn(loop, LONG_SECONDS)


def burn(loop: str, seconds: float) -> None:
    sent, answered = Counter[str](), Counter[str]()
    problems: list[str] = []
    with Server("bridge_app:app", "--loop", loop, "--no-access-log", env={"HOGS": str(HOGS)}) as server:
        assert UVICORN or server.ask("/task-type").json()["plain"] is not loop.endswith("-rust")
        deadline = time.monotonic() + seconds
        drivers = [Driver(server, number, problems) for number in range(DRIVERS)]
        threads = [threading.Thread(target=driver.run, args=(deadline,)) for driver in drivers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 120)
        for driver in drivers:
            sent.update(driver.sent)
            answered.update(driver.answered)
        counts: dict[str, int] = server.ask("/mixed-counts", timeout=60).json()
        print(f"{loop}: {sum(sent.values())} sent, {sum(answered.values())} answered, {counts}")
        assert problems == []
        assert set(sent) == set(KINDS)
        assert answered == sent
        assert {kind: counts[f"{kind} started"] for kind in KINDS} == sent
        assert {kind: counts[f"{kind} finished"] for kind in KINDS} == sent
        # Four threads in a loop of their own take their share of the end too.
        server.stop(timeout=60)
        said = [line for line in server.stderr.splitlines() if HELD not in line]
        assert [line for line in said if any(complaint in line for complaint in COMPLAINTS)] == []


class Driver:
    """A thread's share of the connections: a request of some kind on each, then the answers."""

    def __init__(self, server: Server, number: int, problems: list[str]) -> None:
        self.server, self.number, self.problems = server, number, problems
        self.sent, self.answered = Counter[str](), Counter[str]()

    def run(self, deadline: float) -> None:
        try:
            clients = [self.server.connect(timeout=90) for _ in range(CONNECTIONS // DRIVERS)]
            turn = self.number
            while time.monotonic() < deadline and not self.problems:
                turn += 1
                self.take_turn(clients, [KINDS[(turn + place) % len(KINDS)] for place in range(len(clients))])
        except Exception as error:
            self.problems.append(f"{type(error).__name__}: {error}")

    def take_turn(self, clients: list[Client], kinds: list[str]) -> None:
        for client, kind in zip(clients, kinds, strict=True):
            body = UPLOAD if kind == "upload" else UPLOAD[:100]
            client.send(request(f"/mixed/{kind}", method="POST", body=body))
            self.sent[kind] += 1
        for place, kind in enumerate(kinds):
            if kind == "disconnect":
                clients[place].read_until(b"leave")
                clients[place].close()
                clients[place] = self.server.connect(timeout=90)
            else:
                check(clients[place], kind)
            self.answered[kind] += 1


def check(client: Client, kind: str) -> None:
    response = client.read_response(method="POST")
    body = response.body
    if kind == "stream":
        assert body[:-6] == b"0123456789" * 200 * 40
        body = body[-6:]
    assert (response.status, body) == (200, kind.encode())
