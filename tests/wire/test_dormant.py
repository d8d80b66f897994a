"""Connections that say nothing for a moment: they cost little, and lose nothing."""

from __future__ import annotations

import sys
import time

import pytest
from harness import UVICORN, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn's do not sleep")

# Longer than a connection stays awake. There is nothing to be seen when it falls asleep.
ASLEEP = 1.5


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
@pytest.mark.runtimes
def test_many_that_are_idle_hold_no_buffers(loop: str) -> None:
    count = 700
    with Server("wire_app:app", "--loop", loop, "--no-access-log") as server:
        for client in [server.connect() for _ in range(50)]:
            assert client.ask("/hello").body == b"hello"
        before = server.memory()
        clients = [server.connect() for _ in range(count)]
        for client in clients:
            assert client.ask("/hello").body == b"hello"
        deadline = time.monotonic() + 20
        # Awake, each has more than twelve.
        while server.memory() - before > count * 10 * 1024:
            assert time.monotonic() < deadline, (server.memory() - before) / count
            time.sleep(0.05)
        for client in clients:
            assert client.ask("/hello").body == b"hello"


@pytest.mark.runtimes
def test_who_has_slept_is_answered_and_seen_leaving(loop: str) -> None:
    with Server("wire_app:app", "--loop", loop) as server:
        pipelining, bytewise, blank, leaving, idle = clients = [server.connect() for _ in range(5)]
        for client in clients:
            assert client.ask("/hello").body == b"hello"
        time.sleep(ASLEEP)
        pipelining.send(request("/hello") * 3)
        for _ in range(3):
            assert pipelining.read_response().body == b"hello"
        for byte in request("/hello"):
            bytewise.send(bytes([byte]))
        assert bytewise.read_response().body == b"hello"
        blank.send(b"\r\n")
        leaving.half_close()
        leaving.assert_closed()
        time.sleep(ASLEEP)
        blank.send(request("/hello"))
        assert blank.read_response().body == b"hello"
        blank.send(b"GET / HTTP/1.1\r\n\r\n")
        assert blank.read_response().status == 400
        time.sleep(ASLEEP)
        server.stop()
        for client in (idle, pipelining, bytewise):
            client.assert_closed()


@pytest.mark.runtimes
def test_who_sleeps_is_closed_at_its_time(loop: str) -> None:
    with Server("wire_app:app", "--loop", loop, "--timeout-keep-alive", "2") as server:
        client = server.connect()
        assert client.ask("/hello").body == b"hello"
        time.sleep(ASLEEP)
        client.send(b"\r\n")
        client.assert_closed()
