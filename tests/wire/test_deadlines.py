"""Clients that keep the server waiting: each wait ends, with a word where a word can be said.

The deadlines are short, and what is waited for is what they bring.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from harness import Client, Server, request

from bridgehead.pytest_plugin import MakeClient

SHORT = "300ms"
PACE = ["--min-rate", "0"]


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    options = ["--timeout-first-byte", SHORT, "--timeout-header", SHORT, "--timeout-body", SHORT]
    with Server(
        "wire_app:app", "--loop", loop, *options, "--timeout-write", SHORT, *PACE, "--log-level", "debug"
    ) as server:
        yield server


def test_who_sends_nothing_is_closed_without_a_word(server: Server) -> None:
    with server.connect() as client:
        assert client.read_to_any_end() == b""
        line = server.wait_line(f"127.0.0.1:{client.port}: ")
    assert line.endswith(": Request Timeout: nothing came on the connection\n")
    assert server.ask("/hello").status == 200


def test_a_head_of_head_that_does_not_end_is_told_so_without_a_body(server: Server) -> None:
    with server.connect() as client:
        client.send(b"HEAD / HTTP/1.1\r\n")
        assert client.read_response(method="HEAD").status == 408
        assert client.read_to_any_end() == b""


@pytest.mark.parametrize(
    "part",
    [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: test\r\n", b"\r\nGET"],
    ids=["a letter", "a line", "all but the end", "after an empty line"],
)
def test_a_head_that_does_not_end_is_told_so(server: Server, part: bytes) -> None:
    with server.connect() as client:
        port = client.port
        client.send(part)
        answer = client.read_response()
        assert (answer.status, answer.header("connection")) == (408, "close")
        assert answer.body == b"Request Timeout: the request's head took too long"
        client.assert_closed()
    server.wait_line(f"Refused a request of 127.0.0.1:{port}: Request Timeout")


def test_progress_does_not_put_a_heads_end_off(server: Server) -> None:
    with server.connect() as client:
        client.send(b"GET / HTTP/1.1\r\n")
        until = time.monotonic() + 30
        while not client.is_readable(0.02):
            assert client.try_send(b"a: b\r\n")
            assert time.monotonic() < until
        assert client.read_response().status == 408


def test_a_second_head_has_its_time_too(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/hello").status == 200
        client.send(b"GET / HT")
        assert client.read_response().status == 408
        client.assert_closed()


def test_an_idle_connection_has_the_keep_alive_time_and_not_a_heads(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/hello").status == 200
        assert not client.is_readable(1.0)
        client.assert_open()


def test_a_body_that_stops_is_told_so_and_its_application_too(server: Server) -> None:
    with server.connect() as client:
        client.send(b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nabc")
        answer = client.read_response()
        assert (answer.status, answer.header("connection")) == (408, "close")
        client.assert_closed()


def test_a_body_that_nobody_asks_for_may_take_its_time(server: Server) -> None:
    with server.connect() as client:
        client.send(b"POST /upload?name=rest HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nabc")
        assert server.note("rest-began") is True
        assert not client.is_readable(1.0)
        client.send(b"0123456")
        server.ring("rest")
        assert client.read_response().json() == {"size": 10, "largest": 10}


def test_a_client_that_stops_reading_is_cut_off(server: Server, never_reading_client: MakeClient) -> None:
    client = never_reading_client(server, "/until-cut?name=cut")
    assert server.note("cut") == "ClientDisconnected"
    with pytest.raises(ConnectionError):
        client.answer()
    server.wait_line(": the client reads its answer too slowly, or not at all\n")


def test_a_client_that_stops_reading_is_cut_off_though_all_that_is_declared_was_sent(
    server: Server, never_reading_client: MakeClient
) -> None:
    client = never_reading_client(server, "/declared-until-gone?name=declared&size=16000000")
    assert server.note("declared") == "gone"
    with pytest.raises(ConnectionError):
        client.answer()


@pytest.mark.soak
@pytest.mark.parametrize("rate", [200_000, 20_000])
def test_a_client_that_reads_slowly_and_never_stops_is_waited_for(loop: str, rate: int) -> None:
    with (
        # The client's system tells of what was read in steps of 125 kB: at this rate, every 6.7 s.
        Server("wire_app:app", "--loop", loop, "--timeout-write", "10") as server,
        server.connect() as client,
    ):
        client.send(request("/chunks?count=10000&size=10000"))
        until = time.monotonic() + 40
        while time.monotonic() < until:
            assert client.socket.recv(rate // 10)
            time.sleep(0.1)


def test_a_client_that_pauses_and_goes_on_gets_everything(server: Server) -> None:
    with server.connect() as client:
        for _ in range(3):
            client.send(request("/chunks?count=200&size=1000"))
            assert len(client.read_response().body) == 200_000


@pytest.mark.runtimes
def test_a_rate_is_due_once_a_client_was_waited_for_long_enough(loop: str) -> None:
    options = ["--timeout-body", "0", "--min-rate", "100k"]
    with Server("wire_app:app", "--loop", loop, *options) as server, server.connect() as client:
        client.send(b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n")
        until = time.monotonic() + 40
        while not client.is_readable(0.1):
            assert client.try_send(b"x" * 100)
            assert time.monotonic() < until
        assert client.read_response().status == 408


def test_what_comes_with_the_head_pays_for_a_pause_as_what_comes_behind_it_does() -> None:
    some = b"x" * 6000
    uploads = {
        b"Content-Length: 6002": (some, b"xx"),
        b"Transfer-Encoding: chunked": (b"1770\r\n" + some + b"\r\n", b"2\r\nxx\r\n0\r\n\r\n"),
    }
    # Twelve seconds' worth: more than the five after which the rate is looked at, less than the longest gap.
    with Server("wire_app:app", "--min-rate", "500") as server, ExitStack() as stack:
        clients = {framing: stack.enter_context(server.connect()) for framing in uploads}
        for framing, client in clients.items():
            client.send(
                b"POST /echo HTTP/1.1\r\nHost: test\r\n" + framing + b"\r\n\r\n" + uploads[framing][0]
            )
        assert not next(iter(clients.values())).is_readable(7)
        for framing, client in clients.items():
            assert not client.is_readable(0), framing
            client.send(uploads[framing][1])
            assert client.read_response(method="POST").body == some + b"xx"


@pytest.mark.runtimes
def test_who_reads_on_and_below_the_rate_is_cut_off_and_the_handler_ends(loop: str) -> None:
    """It never pauses for as long as it may; it only reads too little."""
    options = ["--timeout-write", "30", "--min-rate", "1M"]
    with (
        Server("corpus_app:app", "--loop", loop, *options) as server,
        server.connect(receive_buffer=4096) as client,
    ):
        client.send(request("/stream?n=209715200&name=slow-reader"))
        with pytest.raises(ConnectionError):
            read_slowly(client)
        assert server.note("slow-reader") == "ended"


def read_slowly(client: Client) -> None:
    """100 kB in a second at most."""
    until = time.monotonic() + 50
    while time.monotonic() < until:
        assert client.socket.recv(2000)
        time.sleep(0.02)


@pytest.mark.runtimes
def test_nought_is_no_deadline(loop: str) -> None:
    options = ["--timeout-first-byte", "0", "--timeout-header", "0", "--timeout-body", "0"]
    options += ["--timeout-write", "0"]
    with Server("wire_app:app", "--loop", loop, *options) as server, server.connect() as client:
        assert not client.is_readable(0.5)
        client.send(b"POST /echo HTTP/1.1\r\n")
        assert not client.is_readable(0.5)
        client.send(b"Host: test\r\nContent-Length: 3\r\n\r\n")
        assert not client.is_readable(0.5)
        client.send(b"abc")
        assert client.read_response().body == b"abc"


@pytest.mark.runtimes
def test_a_quick_reader_may_pause_for_longer_than_the_rate_is_waited_for(loop: str) -> None:
    with Server("wire_app:app", "--loop", loop) as server, server.connect(receive_buffer=4096) as client:
        client.send(request("/chunks?count=400&size=20000"))
        _, status, *_ = client.read_head()
        assert status == 200
        first = client.read_chunk()
        time.sleep(6.5)
        assert len(first) + sum(map(len, client.read_chunks())) == 8_000_000
