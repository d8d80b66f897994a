"""What clients were denied is counted, each by its reason."""

from __future__ import annotations

import contextlib
from typing import Any

from harness import Client, Server

from bridgehead.testing import ServerThread

HOST = b"Host: test\r\n"
REFUSED = {
    "no_host": b"GET / HTTP/1.1\r\n\r\n",
    "bad_request_line": b"no http\r\n\r\n",
    "two_framings": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "large_body": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 99\r\n\r\n",
    "bad_header": b"GET / HTTP/1.1\r\n" + HOST + b"a b: c\r\n\r\n",
}


async def fails(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - ASGI's
    assert scope["type"] == "http"
    raise RuntimeError("as it should")


def test_each_refusal_is_counted_by_its_reason_while_the_server_runs_and_after() -> None:
    with ServerThread(fails, limit_body=10, allow=["Traceback"]) as server:
        for times, data in enumerate(REFUSED.values(), 1):
            for _ in range(times):
                with Client(("127.0.0.1", server.port)) as client:
                    client.send(data)
                    with contextlib.suppress(ConnectionResetError):
                        assert client.read_to_end().startswith(b"HTTP/1.1 4")
        with Client(("127.0.0.1", server.port)) as client:
            assert client.ask("/").status == 500
        due = {name: times for times, name in enumerate(REFUSED, 1)} | {"application_failed": 1}
        assert server.server.counts() == due
    assert server.server.counts() == due


def test_who_says_nothing_is_counted_too() -> None:
    with ServerThread(fails, timeout_first_byte="100ms") as server:
        with Client(("127.0.0.1", server.port)) as client:
            client.assert_closed()
        assert server.server.counts() == {"silence": 1}


def test_the_command_says_it_in_the_end_at_debug_level() -> None:
    with Server("wire_app:app", "--log-level", "debug") as server:
        with Client(("127.0.0.1", server.port)) as client:
            client.send(REFUSED["no_host"])
            client.read_to_end()
        server.stop()
        server.wait_line("Clients were refused, cut off or kept waiting: no_host 1.")
