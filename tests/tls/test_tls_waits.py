"""Deadlines and limits are what they are in the clear, and their words arrive."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator

import pytest
from harness import Client, Server
from secured import OURS, hello, reach

SHORT = "500ms"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    waits = ("--timeout-first-byte", SHORT, "--timeout-header", SHORT, "--timeout-write", SHORT)
    with Server("tls_app:app", *OURS, *waits, "--limit-body", "1k", "--log-level", "debug") as server:
        yield server


def test_who_says_nothing_after_the_handshake_is_closed_by_the_word(server: Server) -> None:
    with reach(server) as client:
        # An end without `close_notify` is an error here.
        assert client.read_to_end() == b""


def test_a_head_that_does_not_end_is_told_so(server: Server) -> None:
    with reach(server) as client:
        client.send(b"GET / HTTP/1.1\r\n")
        assert client.read_response().status == 408
        assert client.read_to_end() == b""


def test_what_is_refused_is_told_why(server: Server) -> None:
    with reach(server) as client:
        client.send(b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000)
        assert client.read_response().status == 413
        assert client.read_to_end() == b""
    with reach(server) as client:
        client.send(b"GET /a b HTTP/1.1\r\nHost: test\r\n\r\n")
        assert client.read_response().status == 400
        assert client.read_to_end() == b""


def test_a_client_that_does_not_read_is_cut_off_and_knows_it(server: Server) -> None:
    with reach(server) as client:
        client.send(b"GET /endless HTTP/1.1\r\nHost: test\r\n\r\n")
        with reach(server) as other:
            assert other.ask("/notes/gone").json() is True
        with pytest.raises((ssl.SSLError, ConnectionError)):
            read_all(client)


def read_all(client: Client) -> None:
    while client.socket.recv(262_144):
        pass


def test_a_handshake_that_does_not_end_is_over_in_its_time(server: Server) -> None:
    with (
        Client(("127.0.0.1", server.port), timeout=30) as silent,
        Client(("127.0.0.1", server.port), timeout=30) as slow,
    ):
        slow.send(hello()[:100])
        assert silent.read_to_any_end() == b""
        assert slow.read_to_any_end() == b""
        server.wait_line(f"127.0.0.1:{silent.port}: no handshake came of it: its time is over")


def test_who_has_slept_is_answered_and_told_of_the_end() -> None:
    with Server("tls_app:app", *OURS) as server, reach(server) as client, reach(server) as idle:
        for each in (client, idle):
            assert each.ask("/tls").status == 200
        # Longer than a connection stays awake, of which there is nothing to be seen.
        time.sleep(1.5)
        assert client.ask("/tls").status == 200
        server.stop()
        assert idle.read_to_end() == b""
