"""A raw WebSocket client: its handshake, and whatever frames a test makes of bytes.

Not lenient: a server's frame that is masked, reserved or longer written than it has to be fails the test.
Invariant: `read_frame` takes exactly one frame off the wire.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

from harness.client import Client, Response, request

if TYPE_CHECKING:
    from collections.abc import Iterable

# RFC 6455, section 1.3.
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN = 0x80


@dataclass(frozen=True)
class Frame:
    """One frame of the server."""

    opcode: int
    payload: bytes
    fin: bool = True
    reserved: int = 0

    @property
    def closing(self) -> tuple[int, str]:
        """Code and reason of a close frame; 1005 for none."""
        assert self.opcode == CLOSE, self
        if not self.payload:
            return 1005, ""
        return int.from_bytes(self.payload[:2]), self.payload[2:].decode()


def handshake(
    target: str = "/",
    *,
    headers: Iterable[tuple[str, str]] = (),
    without: Iterable[str] = (),
    **options: Any,
) -> bytes:
    """The bytes of a handshake that is right unless the arguments are not."""
    usual = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Version": "13",
    }
    kept = [(name, value) for name, value in usual.items() if name not in without]
    return request(target, headers=[*kept, *headers], **options)


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    reserved: int = 0,
    mask: bytes | None = b"\x01\x02\x03\x04",
) -> bytes:
    """A client's frame; without a mask it is a mistake."""
    first = (FIN if fin else 0) | reserved << 4 | opcode
    bit = 0 if mask is None else 0x80
    if len(payload) < 126:
        head = struct.pack("!BB", first, bit | len(payload))
    elif len(payload) < 65_536:
        head = struct.pack("!BBH", first, bit | 126, len(payload))
    else:
        head = struct.pack("!BBQ", first, bit | 127, len(payload))
    if mask is None:
        return head + payload
    if len(payload) > 1024:
        size = len(payload)
        whole = int.from_bytes(payload) ^ int.from_bytes((mask * (size // 4 + 1))[:size])
        return head + mask + whole.to_bytes(size)
    return head + mask + bytes(byte ^ key for byte, key in zip(payload, cycle(mask), strict=False))


def close_frame(code: int, reason: str = "") -> bytes:
    return frame(CLOSE, code.to_bytes(2) + reason.encode())


class WebSocket:
    """A WebSocket over a client's connection; it is open once this exists."""

    def __init__(self, client: Client, target: str = "/", **options: Any) -> None:
        client.send(handshake(target, **options))
        self.begin(client, client.read_response())

    @classmethod
    def over(cls, client: Client, response: Response) -> Self:
        """One whose handshake was answered so."""
        socket = cls.__new__(cls)
        socket.begin(client, response)
        return socket

    def begin(self, client: Client, response: Response) -> None:
        assert response.status == 101, response
        assert response.header("sec-websocket-accept") == ACCEPT
        self.client = client
        self.response = response
        client.is_websocket = True

    def send(self, data: bytes) -> None:
        self.client.send(data)

    def send_text(self, text: str) -> None:
        self.client.send(frame(TEXT, text.encode()))

    def read_frame(self) -> Frame:
        first, second = self.client.read_exactly(2)
        assert second < 0x80, "a server masks nothing"
        size = second
        if second == 126:
            size = int.from_bytes(self.client.read_exactly(2))
            assert size > 125
        elif second == 127:
            size = int.from_bytes(self.client.read_exactly(8))
            assert size > 65_535
        payload = self.client.read_exactly(size)
        return Frame(first & 0x0F, payload, bool(first & FIN), first >> 4 & 7)

    def read_text(self) -> str:
        """The next frame, which is a text."""
        frame = self.read_frame()
        assert (frame.opcode, frame.fin, frame.reserved) == (TEXT, True, 0), frame
        return frame.payload.decode()

    def read_close(self) -> tuple[int, str]:
        """The close frame, and that nothing follows it; our own answer is given."""
        closing = self.read_frame().closing
        self.client.try_send(close_frame(closing[0]) if closing[0] != 1005 else frame(CLOSE))
        assert self.client.read_to_any_end() == b""
        return closing

    def echo(self, text: str) -> str:
        self.send_text(text)
        return self.read_text()

    def close(self, code: int = 1000, reason: str = "") -> tuple[int, str]:
        """Close in order; gives what the server said."""
        self.client.send(close_frame(code, reason))
        closing = self.read_frame().closing
        assert self.client.read_to_any_end() == b""
        return closing
