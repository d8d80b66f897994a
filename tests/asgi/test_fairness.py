"""No request, however busy, keeps the others or the timers waiting."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from harness import Client, Server, request

# Alone a timer is late by a millisecond; starved it is late for ever. Two busy cores lie between.
LATE_SECONDS = 1.0


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop) as server:
        yield server


@contextmanager
def reading_all(client: Client) -> Iterator[list[int]]:
    """Reads as fast as it can, in a thread; the list holds the count of bytes."""
    count = [0]
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                data = client.socket.recv(1 << 20)
            except OSError:
                return
            if not data:
                return
            count[0] += len(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield count
    finally:
        stop.set()
        # Wakes the thread, which a close would not.
        with suppress(OSError):
            client.socket.shutdown(socket.SHUT_RDWR)
        reader.join(10)
        client.reset()


@pytest.mark.parametrize("size", [1, 1000, 65_536])
def test_an_endless_send_to_the_fastest_reader_leaves_others_and_timers_running(
    server: Server, size: int
) -> None:
    client = server.connect()
    client.send(request(f"/endless-send?size={size}"))
    assert server.note("endless-send") is True
    with reading_all(client) as count:
        for _ in range(5):
            assert server.ask("/hello").body == b"hello"
        assert server.ask("/timer").json() < LATE_SECONDS
        before = count[0]
        for _ in range(5):
            assert server.ask("/hello").body == b"hello"
        assert server.ask("/timer").json() < LATE_SECONDS
        assert count[0] > before, "the endless answer stopped"


@pytest.mark.parametrize(("method", "size"), [("GET", 0), ("HEAD", 1)])
def test_an_endless_send_that_fills_nothing_leaves_others_and_timers_running(
    server: Server, method: str, size: int
) -> None:
    """No channel gets full, which would hold it up as well: only the count of messages does."""
    client = server.connect()
    client.send(request(f"/endless-send?size={size}", method=method))
    assert server.note("endless-send") is True
    for _ in range(5):
        assert server.ask("/hello").body == b"hello"
    assert server.ask("/timer").json() < LATE_SECONDS
    client.reset()


def test_what_many_tasks_send_at_once_leaves_in_the_order_of_their_sends(server: Server) -> None:
    assert server.ask("/sends-at-once").body == b"".join(b"%04d" % number for number in range(1000))


def test_three_endless_sends_leave_others_and_timers_running(server: Server) -> None:
    clients = [server.connect() for _ in range(3)]
    for client in clients:
        client.send(request("/endless-send?size=1"))
        assert server.note("endless-send") is True
    with reading_all(clients[0]), reading_all(clients[1]), reading_all(clients[2]):
        for _ in range(5):
            assert server.ask("/hello").body == b"hello"
        assert server.ask("/timer").json() < LATE_SECONDS


def test_an_endless_receive_leaves_others_and_timers_running(server: Server) -> None:
    client = server.connect()
    client.send(b"POST /endless-receive HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert server.note("endless-receive") is True
    stop = threading.Event()

    def upload() -> None:
        block = b"1\r\nx\r\n" * 10_000
        while not stop.is_set() and client.try_send(block):
            pass

    writer = threading.Thread(target=upload)
    writer.start()
    try:
        for _ in range(5):
            assert server.ask("/hello").body == b"hello"
        assert server.ask("/timer").json() < LATE_SECONDS
    finally:
        stop.set()
        writer.join(10)
        client.reset()


def test_a_receive_that_is_always_ready_leaves_others_and_timers_running(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/disconnected-receive").body == b"answered"
        assert server.ask("/hello").body == b"hello"
        assert server.ask("/timer").json() < LATE_SECONDS
        assert server.note("disconnected-receive") is True


def test_sleep_zero_lets_others_in(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/sleeps?count=20000"))
        assert server.ask("/hello").body == b"hello"
        assert server.ask("/timer").json() < LATE_SECONDS
        assert client.read_response().body == b"slept"


def test_a_stream_of_ten_thousand_messages_is_complete_and_in_order(server: Server) -> None:
    with server.connect() as client:
        body = client.ask("/chunks?count=10000").body
    assert body == b"".join(b"%d," % number for number in range(10_000))
