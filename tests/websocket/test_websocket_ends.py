"""Ends that nobody announces, many of them: the application hears of each, and nothing is left of it."""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
import time
from collections.abc import Callable

import pytest
from harness import Client, Server, WebSocket, handshake
from harness.websocket import BINARY, TEXT, close_frame, frame

SO_ATTACH_FILTER = 26
DROP_EVERYTHING = struct.pack("HBBI", 0x06, 0, 0, 0)  # BPF: return 0


def vanish(client: Client) -> None:
    """As if its system were gone: what is sent to it is neither confirmed nor refused."""
    program = ctypes.create_string_buffer(DROP_EVERYTHING)
    filters = struct.pack("HP", 1, ctypes.addressof(program))
    client.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filters)


@pytest.mark.skipif(sys.platform != "linux", reason="a filter of Linux makes a socket deaf")
def test_a_client_whose_system_is_gone_is_found_out_by_what_it_does_not_confirm() -> None:
    options = ("--ws-ping-interval", "0", "--timeout-write", "1s", "--no-access-log")
    with Server("websocket_app:app", *options) as server, server.connect() as client:
        websocket = WebSocket(client, "/echo")
        assert websocket.echo("warm") == "warm"
        vanish(client)
        # It comes, and its answer fits into the kernel's buffer: only the kernel knows that nobody takes it.
        websocket.send_text("hello?")
        assert server.note("end") == {"type": "websocket.disconnect", "code": 1006, "reason": ""}


def in_order(websocket: WebSocket) -> None:
    assert websocket.close() == (1000, "")


def by_a_reset(websocket: WebSocket) -> None:
    websocket.client.reset()


def without_a_word(websocket: WebSocket) -> None:
    websocket.client.close()


def in_the_middle_of_a_frame(websocket: WebSocket) -> None:
    websocket.client.try_send(frame(BINARY, bytes(1000))[:500])
    websocket.client.close()


def by_a_broken_frame(websocket: WebSocket) -> None:
    websocket.client.try_send(frame(TEXT, b"x", mask=None))
    websocket.client.close()


def by_closing_and_leaving(websocket: WebSocket) -> None:
    websocket.client.try_send(close_frame(1001))
    websocket.client.close()


ENDS: list[Callable[[WebSocket], None]] = [
    in_order,
    by_a_reset,
    without_a_word,
    in_the_middle_of_a_frame,
    by_a_broken_frame,
    by_closing_and_leaving,
]


def test_many_that_end_in_every_way_leave_nothing_behind() -> None:
    with Server("websocket_app:app", "--no-access-log") as server:
        assert server.ask("/ended").json() == 0
        before = server.open_files()
        for number in range(120):
            with server.connect() as client:
                websocket = WebSocket(client, "/echo?note=churn")
                assert websocket.echo(str(number)) == str(number)
                ENDS[number % len(ENDS)](websocket)
            with server.connect() as client:
                client.send(handshake("/echo?note=churn"))
                client.reset()
        assert server.ask("/ended").json() == 0
        until = time.monotonic() + 15
        while server.open_files() > before + 4:
            assert time.monotonic() < until, (before, server.open_files())
        assert server.stderr.count("ERROR") == 0
