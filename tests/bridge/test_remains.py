"""What the bridge keeps of a request while it runs, and that it keeps nothing afterwards."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from harness import Server, request

REQUESTS = int(os.environ.get("REQUESTS", "10000"))
# What the count itself needs of any type.
SPARE = 8


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("bridge_app:app", "--loop", loop, "--no-access-log") as server:
        yield server


def test_asking_again_and_again_leaves_nothing_behind(server: Server) -> None:
    """A stream that asks whether its client is still there, as it may do for hours."""
    with server.connect() as client:
        assert int(client.ask("/polls?count=2000").body) < 20


@pytest.mark.timeout(180)
def test_thousands_of_requests_leave_no_objects_behind(server: Server) -> None:
    targets = ["/hello", "/mixed/sleep", "/mixed/receive", "/mixed/stream", "/mixed/timeout"]

    def run(share: int) -> None:
        with server.connect() as client:
            for number in range(share):
                target = targets[number % 50] if number % 50 < len(targets) else targets[0]
                assert client.ask(target).status == 200

    run(200)
    before: dict[str, Any] = server.ask("/objects").json()
    threads = [threading.Thread(target=run, args=(REQUESTS // 4,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(150)
    gc.collect()
    after: dict[str, Any] = server.ask("/objects").json()
    grown = {name: count - before[name] for name, count in after.items() if count > before[name]}
    assert not {name: more for name, more in grown.items() if more > SPARE}, (before, after)


def test_a_large_body_comes_back_from_the_network(server: Server) -> None:
    """It is sent without a copy, so somebody holds it until it is written, or until its client has left."""
    before = server.ask("/lent-count").json()
    for _ in range(3):
        with server.connect() as client:
            assert client.ask("/lent").body == b"l" * 4_000_000
        with server.connect(receive_buffer=4096) as client:
            client.send(request("/lent"))
            client.read_until(b"llll")
            client.reset()
    deadline = time.monotonic() + 20
    while server.ask("/lent-count").json() != before:
        assert time.monotonic() < deadline
