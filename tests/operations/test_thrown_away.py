"""How much is read of clients who send on behind a refusal, as the meters have it."""

from __future__ import annotations

import pytest
from harness import UVICORN, Server, WebSocket
from harness.websocket import TEXT, close_frame, frame
from operators import Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

MEBIBYTE = 1024 * 1024
ENDLESS = {
    "head": b"GET /hello HTTP/1.1\r\nHost: test\r\na: ",
    "length": b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 9000000000\r\n\r\n",
    "chunks": b"POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
    "garbage": b"\0",
}


@pytest.mark.parametrize("head", ENDLESS.values(), ids=ENDLESS)
def test_who_sends_on_behind_a_refusal_is_soon_not_read_any_more(head: bytes) -> None:
    """It has its time to read the answer; what it sends meanwhile is thrown away, up to a bound."""
    with Server("wire_app:app", "--limit-body", "5000", "--admin", "127.0.0.1:0") as server:
        operators = Operators(server)
        with server.connect() as client:
            assert not client.try_send(head + b"x" * 100_000_000)
        assert read_by(operators) < 3 * MEBIBYTE


@pytest.mark.parametrize("last", [frame(TEXT, b"\xff"), close_frame(1000)], ids=["garbage", "close"])
def test_who_sends_on_behind_the_end_of_a_websocket_is_soon_not_read_any_more(last: bytes) -> None:
    with Server("websocket_app:app", "--admin", "127.0.0.1:0") as server:
        operators = Operators(server)
        with server.connect() as client:
            WebSocket(client, "/size")
            assert not client.try_send(last + b"x" * 100_000_000)
        assert read_by(operators) < 3 * MEBIBYTE


def read_by(operators: Operators) -> float:
    """What is read at once may go beyond what is allowed, and the bound, by a little."""
    return operators.samples()['bridgehead_network_io_bytes_total{network_io_direction="receive"}']
