"""Bodies that the application does not read: the client can go on, or is told that it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Server, request

HEAD = b"POST /noread HTTP/1.1\r\nHost: test\r\n"


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("wire_app:app", "--loop", loop) as server:
        yield server


def test_a_body_that_comes_behind_its_answer_takes_no_connection_away(server: Server) -> None:
    """So most clients send: the head in one write, the body in another."""
    with server.connect() as client:
        for _ in range(50):
            client.send(HEAD + b"Content-Length: 5\r\n\r\n")
            answer = client.read_response()
            assert (answer.status, answer.closes) == (200, False)
            client.send(b"hello")
        client.assert_open()


def test_the_rest_of_a_body_that_was_begun_to_be_read_takes_none_away(server: Server) -> None:
    with server.connect() as client:
        for name in ("a", "b"):
            client.send(
                f"POST /early?name={name} HTTP/1.1\r\nHost: test\r\nContent-Length: 6\r\n\r\nabc".encode()
            )
            answer = client.read_response()
            assert (answer.body, answer.closes) == (b"abc", False)
            client.send(b"def")
        client.assert_open()


@pytest.mark.parametrize(
    "framed",
    [
        b"Content-Length: 150000\r\n\r\n" + b"x" * 150_000,
        b"Content-Length: 260000\r\n\r\n" + b"x" * 260_000,
        b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n" * 300 + b"0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n" * 30_000 + b"0\r\n\r\n",
    ],
    ids=["length, 150 kB", "length, 260 kB", "300 chunks", "30000 chunks"],
)
def test_a_request_behind_an_unread_body_is_answered(server: Server, framed: bytes) -> None:
    with server.connect() as client:
        client.send(HEAD + framed + request("/hello"))
        answer = client.read_response()
        assert (answer.status, answer.closes) == (200, False)
        assert client.read_response().body == b"hello"
        client.assert_open()


def test_a_body_that_is_too_large_to_be_thrown_away_is_told_so(server: Server) -> None:
    with server.connect() as client:
        client.send(HEAD + b"Content-Length: 5000000\r\n\r\n" + b"x" * 100_000)
        answer = client.read_response()
        assert (answer.status, answer.closes) == (200, True)
        client.assert_closed()


@pytest.mark.runtimes
def test_a_rest_that_never_comes_is_not_waited_for_for_ever(server: Server) -> None:
    with server.connect() as client:
        client.send(HEAD + b"Content-Length: 5\r\n\r\nabc")
        assert client.read_response().status == 200
        client.assert_closed()


def test_connect_is_refused_without_a_wait(server: Server) -> None:
    with server.connect() as client:
        client.send(b"CONNECT test:80 HTTP/1.1\r\nHost: test:80\r\n\r\n")
        assert client.read_response().status == 501
        client.assert_closed()


@pytest.mark.runtimes
def test_a_rest_that_takes_longer_than_an_idle_connection_may_is_thrown_away(loop: str) -> None:
    options = ("--loop", loop, "--timeout-keep-alive", "300ms")
    with Server("wire_app:app", *options) as server, server.connect() as client:
        client.send(HEAD + b"Content-Length: 60\r\n\r\n")
        assert client.read_response().status == 200
        for _ in range(6):
            assert not client.is_readable(0.2)
            client.send(b"x" * 10)
        client.assert_open()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_connection_that_ends_with_its_answer_ends_without_the_rest(server: Server, version: str) -> None:
    head = f"POST /noread HTTP/{version}\r\nHost: test\r\nConnection: close\r\nContent-Length: 10\r\n\r\nabc"
    with server.connect() as client:
        client.send(head.encode())
        assert client.read_response().body == b"not read"
        client.assert_closed()
