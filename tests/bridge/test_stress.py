"""Requests of every kind while threads fight for the GIL: nobody collides. `SECONDS=600` makes it long."""

from __future__ import annotations

import os
import threading
import time

import pytest
from harness import Client, Server, request

SECONDS = float(os.environ.get("SECONDS", "10"))
CONNECTIONS, DRIVERS, HOGS = 100, 4, 4
KINDS = ["plain", "sleep", "body", "spawn", "timeout", "thread", "receive", "stream"]


@pytest.mark.timeout(SECONDS + 120)
def test_a_hundred_connections_among_threads_that_burn_the_gil(loop: str) -> None:
    problems: list[str] = []
    answered = [0] * DRIVERS
    with Server("bridge_app:app", "--loop", loop, "--no-access-log", env={"HOGS": str(HOGS)}) as server:
        deadline = time.monotonic() + SECONDS

        def drive(driver: int) -> None:
            clients = [server.connect(timeout=60) for _ in range(CONNECTIONS // DRIVERS)]
            turn = driver
            try:
                while time.monotonic() < deadline and not problems:
                    turn += 1
                    kinds = [KINDS[(turn + place) % len(KINDS)] for place in range(len(clients))]
                    for client, kind in zip(clients, kinds, strict=True):
                        client.send(request(f"/mixed/{kind}", method="POST", body=b"x" * 100))
                    for client, kind in zip(clients, kinds, strict=True):
                        check(client, kind)
                        answered[driver] += 1
            except Exception as error:
                problems.append(f"{type(error).__name__}: {error}")

        drivers = [threading.Thread(target=drive, args=(number,)) for number in range(DRIVERS)]
        for thread in drivers:
            thread.start()
        for thread in drivers:
            thread.join(SECONDS + 90)
        assert not problems
        assert min(answered) > 0
        # Four threads in a loop of their own take their share of the end too.
        server.stop(timeout=40)
        for complaint in ("Cannot enter", "ERROR", "Exception"):
            assert complaint not in server.stderr, server.stderr
    print(f"{sum(answered)} answers")


def check(client: Client, kind: str) -> None:
    response = client.read_response(method="POST")
    body = response.body
    if kind == "stream":
        assert body[:-6] == b"0123456789" * 200 * 40
        body = body[-6:]
    assert (response.status, body) == (200, kind.encode())
