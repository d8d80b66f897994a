"""At debug level a request that never reached the application has a line: whose it was, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Server
from harness.http2 import Http2Client

HOST = b"Host: test\r\n"

RAW = 'Bad Request: the request target has a raw ", <, >, `, #, control or non-ASCII byte: percent-encode it'

REFUSED = [
    (b"GET / HTTP/1.1\r\n\r\n", "Bad Request: an HTTP/1.1 request needs a Host header"),
    (b"GET / HTTP/1.1\r\n" + HOST * 2 + b"\r\n", "Bad Request: one Host header was due, more came"),
    (
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "Bad Request: the Host header is not a host with an optional port",
    ),
    (b"OPTIONS ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "Bad Request: the request target must begin with /"),
    (b'GET /?a="1" HTTP/1.1\r\n' + HOST + b"\r\n", RAW),
    (b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n", "Not Implemented: this method is not served"),
    (
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "Not Implemented: chunked is the only transfer coding understood",
    ),
    (
        b"POST / HTTP/1.1\r\n" + HOST + b"Expect: more\r\nContent-Length: 0\r\n\r\n",
        "Expectation Failed: 100-continue is the only expectation understood",
    ),
    (
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        "Bad Request: the body's framing is broken",
    ),
    (b"no http\r\n\r\n", "Bad Request: "),
    (b"GET /" + b"x" * 66_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", "URI Too Long: "),
    (
        b"GET / HTTP/1.1\r\n" + HOST + b"a: b\r\n" * 101 + b"\r\n",
        "Request Header Fields Too Large: ",
    ),
]


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("log_app:app", "--log-level", "debug", "--loop", loop) as server:
        yield server


@pytest.mark.parametrize(("head", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_a_refusal_says_why(server: Server, head: bytes, reason: str) -> None:
    with server.connect() as client:
        port = client.port
        client.try_send(head)
        assert client.read_response().status >= 400
        line = server.wait_line(f"127.0.0.1:{port}: ")
    assert line.startswith(f"DEBUG:    Refused a request of 127.0.0.1:{port}: {reason}")
    assert len(line) > len(f"DEBUG:    Refused a request of 127.0.0.1:{port}: ") + 20
    assert server.stderr.count(f"127.0.0.1:{port}") == 1


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HEAD / HTTP/1.1\r\n" + HOST + b"a: b\r\n" * 101 + b"\r\n", 431),
        (b"HEAD /" + b"x" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"HEAD / HTTP/1.1\r\nHost\r\n\r\n", 400),
    ],
)
@pytest.mark.parametrize("parts", [1, 3])
def test_a_refusal_of_head_has_no_body(server: Server, head: bytes, status: int, parts: int) -> None:
    with server.connect() as client:
        for at in range(0, len(head), len(head) // parts + 1):
            client.try_send(head[at : at + len(head) // parts + 1])
        answer = client.read_response(method="HEAD")
        assert answer.status == status
        assert answer.header("content-length") not in (None, "0")
        assert client.read_to_any_end() == b""


def test_a_client_that_begins_in_http_2_is_told_of_too_where_that_is_off() -> None:
    with Server("log_app:app", "--log-level", "debug", "--no-http2") as server, server.connect() as client:
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        client.read_to_any_end()
        line = server.wait_line(f"127.0.0.1:{client.port}: ")
    assert line.endswith(": HTTP Version Not Supported: HTTP/1.1 and HTTP/1.0 are understood\n")


@pytest.mark.parametrize(
    ("method", "target", "status", "reason"),
    [
        ("GET", "/files/none", 404, "Not Found"),
        ("HEAD", "/files/%2e%2e/secret", 404, "Not Found"),
        ("POST", "/files/some", 405, "Method Not Allowed: files are read by GET and HEAD"),
    ],
)
def test_so_does_one_for_a_file(tmp_path: Path, method: str, target: str, status: int, reason: str) -> None:
    (tmp_path / "some").write_text("some")
    with Server("log_app:app", "--log-level", "debug", "--static", f"/files={tmp_path}") as server:
        with server.connect() as client:
            assert client.ask("/files/some").status == 200
            assert client.ask(target, method=method).status == status
            line = f"DEBUG:    Refused a request of 127.0.0.1:{client.port}: {reason}\n"
            assert server.wait_line(f"127.0.0.1:{client.port}: ") == line
        with Http2Client(server.port) as client:
            asked = client.ask(target, method=method)
            assert asked.status == status
            server.wait_line(f": {reason}", count=2)


def test_above_debug_level_nothing_is_said() -> None:
    with Server("log_app:app") as server:
        with server.connect() as client:
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            assert client.read_response().status == 400
        server.stop()
        assert "Refused" not in server.stderr
