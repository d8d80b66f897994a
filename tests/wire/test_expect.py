"""`Expect: 100-continue`: the client is told to go on when somebody wants to read, and not before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import UVICORN, Server, assert_refused, request, seen

EXPECT = ("Expect", "100-continue")


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("wire_app:app", "--loop", loop) as server:
        yield server


def head(target: str, *, version: str = "1.1", expect: str = "100-continue", length: int = 5) -> bytes:
    return (
        f"POST {target} HTTP/{version}\r\nHost: test\r\nContent-Length: {length}\r\nExpect: {expect}\r\n\r\n"
    ).encode()


def test_the_client_is_told_to_continue_when_the_application_first_reads(server: Server) -> None:
    with server.connect() as client:
        client.send(head("/interim?name=first-read"))
        server.note("first-read-began")
        assert not client.is_readable(0.3), "something came before the application read"
        server.ring("first-read")
        interim = client.read_response()
        assert (interim.status, interim.reason, interim.body) == (100, "Continue", b"")
        client.send(b"hello")
        final = client.read_response()
        assert (final.status, final.body) == (200, b"hello")
        client.assert_open()


def test_the_client_is_told_to_continue_once(server: Server) -> None:
    with server.connect() as client:
        client.send(head("/echo", length=10))
        assert client.read_response().status == 100
        client.send(b"01234")
        server.ask("/hello")
        client.send(b"56789")
        final = client.read_response()
        assert (final.status, final.body) == (200, b"0123456789")


@pytest.mark.parametrize("value", ["100-continue", "100-Continue", "100-CONTINUE"])
def test_the_expectation_is_understood_in_any_case(server: Server, value: str) -> None:
    with server.connect() as client:
        client.send(head("/echo", expect=value))
        assert client.read_response().status == 100
        client.send(b"hello")
        assert client.read_response().body == b"hello"


def test_a_chunked_upload_is_told_to_continue(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/echo", headers=[("Transfer-Encoding", "chunked"), EXPECT]))
        assert client.read_response().status == 100
        client.send(b"5\r\nhello\r\n0\r\n\r\n")
        assert client.read_response().body == b"hello"
        client.assert_open()


def test_an_application_that_does_not_read_does_not_tell_to_continue(server: Server) -> None:
    with server.connect() as client:
        client.send(head("/noread"))
        response = client.read_response()
        assert (response.status, response.body) == (200, b"not read")
        # Nobody could tell the body from the next request.
        assert response.closes or UVICORN


def test_bytes_after_an_early_answer_are_a_body_or_nothing_at_all(server: Server) -> None:
    follower = request("/smuggled/after-an-early-answer")
    with server.connect() as client:
        client.send(head("/noread", length=len(follower)))
        assert client.read_response().status == 200
        client.try_send(follower)
        client.half_close_quietly()
        assert client.read_to_any_end() == b""
    assert "/smuggled/after-an-early-answer" not in seen(server)


def test_a_body_that_is_sent_without_waiting_is_read(server: Server) -> None:
    with server.connect() as client:
        client.send(head("/echo") + b"hello" + request("/hello"))
        response = client.read_response()
        if response.status == 100:
            response = client.read_response()
        assert (response.status, response.body) == (200, b"hello")
        assert client.read_response().body == b"hello"


def test_http_1_0_is_never_told_to_continue(server: Server) -> None:
    with server.connect() as client:
        client.send(head("/interim?name=old", version="1.0"))
        server.note("old-began")
        server.ring("old")
        assert not client.is_readable(0.3)
        client.send(b"hello")
        response = client.read_response()
        assert (response.status, response.body) == (200, b"hello")


def test_an_expectation_without_a_body_is_no_reason_to_wait(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/hello", headers=[EXPECT])
        if response.status == 100:
            response = client.read_response()
        assert response.body == b"hello"
        client.assert_open()


@pytest.mark.parametrize(
    "value", ["y 100-continue", "200-ok", "100-continue, other", "100", "100-continued", "x=y"]
)
def test_an_unknown_expectation_fails_and_is_not_run(server: Server, value: str) -> None:
    before = seen(server)
    assert_refused(server, head("/echo", expect=value, length=0), {417})
    assert seen(server) == before
