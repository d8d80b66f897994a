"""Streams that the parser of HTTP/2 breaks off: each is counted, and has a line with its reason at debug."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from harness import UVICORN, Client, Server
from harness.frames import DATA, ENDS_HEAD, ENDS_STREAM, HEADERS, PREFACE, FrameClient, asks, frame, head

from bridgehead.testing import ServerThread

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has HTTP/2 with another parser only")

TARGET = "the request target must begin with /, and what is no letter of a URL"
CONNECTION = "Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding and Upgrade are not for HTTP/2"
LENGTH = "one Content-Length of digits was due"
SHORT = "the body is shorter than its Content-Length"
LONG = "the body is longer than its Content-Length"
PSEUDO = {":method": "GET", ":scheme": "http", ":authority": "test", ":path": "/scope"}


def asked(*headers: tuple[str, str], **changed: str | None) -> bytes:
    """A request on the first stream; `path=None` leaves that pseudo-header out."""
    pseudo = PSEUDO | {f":{name}": value for name, value in changed.items()}
    there = [(name, value) for name, value in pseudo.items() if value is not None]
    return frame(HEADERS, ENDS_HEAD | ENDS_STREAM, 1, head([*there, *headers]))


def uploads(length: int, *pieces: bytes) -> bytes:
    headers = [("content-length", str(length))]
    bodies = b"".join(frame(DATA, 0, 1, piece) for piece in pieces)
    return asks(1, "/body", method="POST", headers=headers, ends=False) + bodies + frame(DATA, ENDS_STREAM, 1)


BROKEN_OFF: dict[str, tuple[bytes, str]] = {
    "a raw quote": (asked(path='/scope?a="1"'), TARGET),
    "a raw bracket": (asked(path="/<scope>"), TARGET),
    "a blank in a path": (asked(path="/a scope"), TARGET),
    "a path without its slash": (asked(path="scope"), TARGET),
    "no path": (asked(path=None), ":path is missing"),
    "an empty path": (asked(path=""), ":path is missing or empty"),
    "no method": (asked(method=None), ":method is missing"),
    "no scheme": (asked(scheme=None), ":scheme is missing"),
    "a bad authority": (asked(authority="a b"), ":authority is not a host with an optional port"),
    "a bad scheme": (asked(scheme="h t"), ":scheme is not the scheme of a URL"),
    "a status": (asked(status="200"), "a request has no :status"),
    "a protocol without CONNECT": (
        asked(protocol="websocket"),
        ":protocol is for the CONNECT of a WebSocket",
    ),
    "a connection": (asked(("connection", "close")), CONNECTION),
    "a coding": (asked(("transfer-encoding", "chunked")), CONNECTION),
    "other trailers": (asked(("te", "gzip")), "TE may only say trailers in HTTP/2"),
    "a late pseudo-header": (
        asked(("x", "1"), (":path", "/")),
        "a pseudo-header came behind the other headers",
    ),
    "a second path": (asked((":path", "/")), "a pseudo-header came twice"),
    "a length that is none": (asked(("content-length", "x")), LENGTH),
    "a length without a body": (asked(("content-length", "5")), SHORT),
    "a short body": (uploads(5, b"abc"), SHORT),
    "a long body": (uploads(3, b"abc", b"de"), LONG),
}


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop, "--log-level", "debug") as server:
        yield server


@pytest.mark.parametrize(("sent", "reason"), BROKEN_OFF.values(), ids=BROKEN_OFF.keys())
def test_a_stream_that_is_broken_off_says_why(server: Server, sent: bytes, reason: str) -> None:
    with server.connect() as socket:
        client = FrameClient(socket)
        client.client.send(sent)
        assert client.answer(1) == "reset"
        line = server.wait_line(f"127.0.0.1:{socket.port}: ")
        assert line.startswith(
            f"DEBUG:    Refused a request of 127.0.0.1:{socket.port}: Bad Request: {reason}"
        )
        client.client.send(asks(3, "/scope"))
        assert client.answer(3) == "200"
        refused = [line for line in server.stderr.splitlines() if f"of 127.0.0.1:{socket.port}: " in line]
        assert len(refused) == 1


async def answers(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - ASGI's
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_streams_that_are_broken_off_are_counted_at_any_level() -> None:
    with ServerThread(answers, lifespan="off") as server, Client(("127.0.0.1", server.port)) as socket:
        client = FrameClient(socket)
        for stream in (1, 3, 5):
            client.client.send(asks(stream, "/<"))
            assert client.answer(stream) == "reset"
        client.client.send(asks(7, "/"))
        assert client.answer(7) == "200"
        assert server.server.counts() == {"bad_stream": 3}


@pytest.mark.parametrize("begun", [16, 20, 23])
def test_a_preface_that_does_not_end_is_counted_and_told(begun: int) -> None:
    """By `PRI` alone it could be a request of HTTP/1, and is answered as one."""
    with Server("corpus_app:app", "--timeout-header", "200ms", "--log-level", "debug") as server:
        with server.connect() as client:
            client.send(PREFACE[:begun])
            client.read_to_any_end()
            server.wait_line(f"127.0.0.1:{client.port}: Request Timeout: the client's preface took too long")
        server.stop()
        assert "slow_head 1" in server.stderr
