"""Who is cut off, and which connection is closed in order, is counted by the limit that did it."""

from __future__ import annotations

import pytest
from harness import UVICORN, Server, WebSocket
from harness.http2 import Http2Client
from harness.websocket import BINARY, TEXT, frame
from operators import Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

ADMIN = ("--admin", "127.0.0.1:0")


def refused(operators: Operators) -> dict[str, int]:
    found: dict[str, int] = operators.status()["total"]["refusals"]
    return found


@pytest.mark.parametrize(
    ("options", "sent", "reason"),
    [
        (("--ws-idle-timeout", "100ms"), b"", "idle_websocket"),
        (("--ws-lifetime", "100ms"), b"", "old_websocket"),
        (("--ws-ping-interval", "50ms", "--ws-ping-timeout", "100ms"), b"", "no_pong"),
        (("--ws-max-size", "10"), frame(BINARY, bytes(11)), "large_message"),
        ((), frame(TEXT, b"\xff"), "bad_frames"),
    ],
)
def test_a_websocket_that_a_limit_ends_is_counted_by_its_reason(
    options: tuple[str, ...], sent: bytes, reason: str
) -> None:
    with Server("websocket_app:app", *ADMIN, *options) as server:
        operators = Operators(server)
        with server.connect() as client:
            WebSocket(client, "/echo").send(sent)
            operators.until(lambda: refused(operators) == {reason: 1})
            assert operators.samples()[f'bridgehead_refusals_total{{reason="{reason}"}}'] == 1


def closed(operators: Operators, reason: str) -> float:
    return operators.samples()[f'bridgehead_connections_closed_total{{reason="{reason}"}}']


def test_a_connection_on_which_nothing_is_asked_is_counted_when_it_is_closed(loop: str) -> None:
    options = ("--loop", loop, "--timeout-keep-alive", "50ms")
    with Server("wire_app:app", *ADMIN, *options) as server:
        operators = Operators(server)
        assert closed(operators, "keep_alive") == 0
        with server.connect() as client:
            assert client.ask("/hello").status == 200
            client.assert_closed()
        operators.until(lambda: closed(operators, "keep_alive") == 1)
        with Http2Client(server.port) as client:
            assert client.ask("/hello").status == 200
            operators.until(lambda: closed(operators, "keep_alive") == 2)
        assert closed(operators, "lifetime") == 0
        assert refused(operators) == {}


@pytest.mark.parametrize(
    "option", [("--limit-connection-requests", "2"), ("--connection-lifetime", "0.000001")]
)
def test_a_connection_that_has_had_its_time_is_counted_once(option: tuple[str, ...]) -> None:
    with Server("wire_app:app", *ADMIN, *option) as server:
        operators = Operators(server)
        with server.connect() as client:
            client.ask("/hello")
            client.ask("/hello")
            client.assert_closed()
        assert closed(operators, "lifetime") == 1
        assert closed(operators, "keep_alive") == 0
