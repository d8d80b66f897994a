"""Connections that carry more than one request, and the ends they come to."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from harness import UVICORN, Client, Server, request


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("wire_app:app", "--loop", loop) as server:
        yield server


def test_a_connection_is_kept_for_the_next_request(server: Server) -> None:
    with server.connect() as client:
        for _ in range(5):
            response = client.ask("/hello")
            assert (response.status, response.body, response.version) == (200, b"hello", "1.1")
            assert response.header("connection") in (None, "keep-alive")


def test_a_request_with_connection_close_ends_the_connection(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/hello", headers=[("Connection", "close")])
        assert response.body == b"hello"
        assert response.closes
        client.assert_closed()


@pytest.mark.parametrize("value", ["Close", "CLOSE", "keep-alive, close", "x-hop, close"])
def test_connection_close_is_found_in_any_case_and_in_a_list(server: Server, value: str) -> None:
    with server.connect() as client:
        response = client.ask("/hello", headers=[("Connection", value)])
        assert response.body == b"hello"
        client.assert_closed()


def test_what_follows_a_request_with_connection_close_is_not_answered(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/hello", headers=[("Connection", "close")]) + request("/not-to-be-run/closed"))
        assert client.read_response().body == b"hello"
        client.assert_closed()
    assert "/not-to-be-run/closed" not in server.ask("/seen").json()


def test_http_1_0_closes_after_one_answer(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/hello", version="1.0")
        assert response.body == b"hello"
        client.assert_closed()


def test_http_1_0_with_keep_alive_is_kept_and_told_so(server: Server) -> None:
    with server.connect() as client:
        for _ in range(3):
            response = client.ask("/hello", version="1.0", headers=[("Connection", "keep-alive")])
            assert response.body == b"hello"
            assert (response.header("connection") or "").lower() == "keep-alive"


def test_http_1_0_gets_no_chunks_but_a_body_until_the_close(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/chunks?count=3&size=4", version="1.0")
        assert response.framing == "close"
        assert response.body == b"c" * 12


def test_http_1_0_with_keep_alive_gets_no_chunks_either(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/chunks?count=3&size=4", version="1.0", headers=[("Connection", "keep-alive")])
        assert response.framing == "close"
        assert response.body == b"c" * 12


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    with server.connect() as client:
        client.send(
            request("/later?seconds=0.2&say=one")
            + request("/later?seconds=0.05&say=two")
            + request("/echo", method="POST", body=b"three")
            + request("/later?seconds=0&say=four")
        )
        assert [client.read_response().body for _ in range(4)] == [b"one", b"two", b"three", b"four"]


def test_a_thousand_pipelined_requests_in_one_write_get_a_thousand_answers_in_order(server: Server) -> None:
    before = server.memory_peak()
    with server.connect() as client:
        burst = b"".join(request("/echo", method="POST", body=b"%d" % number) for number in range(1000))
        # In a thread: the server may stop reading until its answers are read.
        writer = threading.Thread(target=client.send, args=(burst,))
        writer.start()
        answers = [client.read_response().body for _ in range(1000)]
        writer.join()
        client.assert_open()
    assert answers == [b"%d" % number for number in range(1000)]
    assert server.memory_peak() - before < 32 * 1024 * 1024


def test_a_pipelined_request_after_one_that_is_refused_is_not_run(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/hello") + request("/hello", host=None) + request("/not-to-be-run/refused"))
        assert client.read_response().status == 200
        assert client.read_response().status == 400
        client.assert_closed()
    assert "/not-to-be-run/refused" not in server.ask("/seen").json()


UNREAD = [
    b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n" * 300 + b"0\r\n\r\n",
    b"Content-Length: 100000\r\n\r\n" + b"x" * 100_000,
    b"Content-Length: 0\r\n\r\n",
]


@pytest.mark.parametrize("body", UNREAD, ids=["chunks", "length", "none"])
def test_requests_before_one_that_is_refused_are_answered_first(server: Server, body: bytes) -> None:
    """They came in one write, and the server may know of the last before it has read the others."""
    with server.connect() as client:
        client.send(
            b"POST /noread HTTP/1.1\r\nHost: test\r\n" + body + request("/hello") + b"no request\r\n\r\n"
        )
        assert client.read_response().body == b"not read"
        assert client.read_response().body == b"hello"
        assert client.read_response().status == 400
        client.assert_closed()


@pytest.mark.parametrize(
    "line", [b"Host: a b", b"Host: test\r\nExpect: more", b"Host: test\r\nConnection: close"]
)
def test_nothing_is_said_behind_an_answer_that_ends_its_connection(server: Server, line: bytes) -> None:
    body = b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    with server.connect() as client:
        client.send(b"POST /noread HTTP/1.1\r\n" + line + b"\r\n" + body + b"no request\r\n\r\n")
        assert client.read_response().closes
        client.assert_closed()


def test_a_half_closed_client_gets_its_answer(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/hello"))
        client.half_close()
        assert client.read_response().body == b"hello"
        client.assert_closed()


def test_a_half_closed_client_gets_an_answer_that_takes_its_time(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/later?seconds=0.3&say=patience", method="POST", body=b"sent"))
        client.half_close()
        assert client.read_response().body == b"patience"
        client.assert_closed()


def test_a_half_closed_client_gets_all_its_pipelined_answers(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/later?seconds=0.1&say=one") + request("/later?seconds=0.1&say=two"))
        client.half_close()
        assert [client.read_response().body for _ in range(2)] == [b"one", b"two"]
        client.assert_closed()


def test_empty_lines_before_a_request_line_are_skipped(server: Server) -> None:
    with server.connect() as client:
        client.send(b"\r\n" + request("/hello"))
        assert client.read_response().body == b"hello"
        client.send(b"\r\n\r\n" + request("/hello"))
        assert client.read_response().body == b"hello"


def test_a_client_that_connects_and_leaves_costs_nothing(server: Server) -> None:
    server.ask("/hello")
    before = server.open_files()
    for leave in (Client.close, Client.reset, Client.half_close):
        for said in (b"", b"GET /hel", b"GET /hello HTTP/1.1\r\nHost: test\r\n"):
            for _ in range(5):
                client = server.connect()
                client.try_send(said)
                leave(client)
                if leave is Client.half_close:
                    client.read_to_any_end()
                client.close()
    server.ask("/hello")
    # One or two may be on their way out.
    assert server.open_files() <= before + 3
    assert server.process.poll() is None


def test_an_idle_connection_is_closed_after_the_keep_alive_time(loop: str) -> None:
    with (
        Server("wire_app:app", "--loop", loop, "--timeout-keep-alive", "1") as server,
        server.connect() as client,
    ):
        assert client.ask("/hello").body == b"hello"
        client.assert_closed()


@pytest.mark.runtimes
def test_the_keep_alive_time_does_not_strike_a_request_that_runs_longer(loop: str) -> None:
    with (
        Server("wire_app:app", "--loop", loop, "--timeout-keep-alive", "1") as server,
        server.connect() as client,
    ):
        client.send(request("/later?seconds=1.5&say=slow") + request("/hello"))
        assert client.read_response().body == b"slow"
        assert client.read_response().body == b"hello"


@pytest.mark.runtimes
@pytest.mark.skipif(UVICORN, reason="uvicorn keeps a connection for 5 seconds")
def test_the_default_keep_alive_time_is_longer_than_a_load_balancers(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/hello").body == b"hello"
        assert not client.is_readable(6.0)
        client.assert_open()


def test_no_keep_alive_time_still_leaves_time_for_a_first_request() -> None:
    with Server("wire_app:app", "--timeout-keep-alive", "0") as server, server.connect() as client:
        client.send(b"GET /hello HTTP/1.1\r\n")
        # Another whole exchange: the server has had time to look at the first connection.
        assert server.ask("/hello").status == 200
        client.send(b"Host: test\r\n\r\n")
        assert client.read_response().status == 200


def test_a_connection_ends_with_an_answer_once_it_has_had_its_requests_or_its_time() -> None:
    # A millionth of a second: it is over when the first answer is.
    for option in (("--limit-connection-requests", "2"), ("--connection-lifetime", "0.000001")):
        with Server("wire_app:app", *option) as server, server.connect() as client:
            assert not client.ask("/hello").closes
            assert client.ask("/hello").closes
            client.assert_closed()


@pytest.mark.runtimes
@pytest.mark.skipif(UVICORN, reason="uvicorn has no such option")
@pytest.mark.parametrize("idle", [0.9, 2.5])
def test_a_connection_that_has_had_its_time_while_it_was_idle_ends_with_the_next_answer(
    loop: str, idle: float
) -> None:
    """For longer than a second it sleeps."""
    options = ["--loop", loop, "--connection-lifetime", f"{idle * 0.6:.3g}"]
    with Server("wire_app:app", *options) as server, server.connect() as client:
        answer = client.ask("/hello")
        if not answer.closes:
            assert not client.is_readable(idle)
            answer = client.ask("/hello")
        assert answer.closes
        client.assert_closed()
