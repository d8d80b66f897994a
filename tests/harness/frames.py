"""Frames of HTTP/2 as bytes, for clients that no library would be.

Not a client that is in order (`http2`): nothing is acknowledged, and nothing that is sent is judged.
Invariant: a frame that has come is never lost to the reset that may follow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hpack import Decoder, Encoder

from harness.client import Client, ClosedError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
# Flags; an acknowledgement has the same bit as a stream's end.
ENDS_STREAM, ACK, ENDS_HEAD = 1, 1, 4
NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, REFUSED_STREAM, CANCEL, CALM = 0, 1, 3, 7, 8, 11


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def window(stream: int, more: int) -> bytes:
    return frame(WINDOW, 0, stream, more.to_bytes(4, "big"))


def reset(stream: int, code: int = CANCEL) -> bytes:
    return frame(RESET, 0, stream, code.to_bytes(4, "big"))


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(
        SETTINGS, 0, 0, b"".join(key.to_bytes(2, "big") + value.to_bytes(4, "big") for key, value in pairs)
    )


def head(headers: Iterable[tuple[str, str]]) -> bytes:
    """Packed without any memory of what was sent before."""
    return Encoder().encode([(name, value, True) for name, value in headers])


def asks(
    stream: int,
    path: str = "/echo",
    *,
    method: str = "GET",
    headers: Iterable[tuple[str, str]] = (),
    ends: bool = True,
) -> bytes:
    """A request in one frame."""
    pseudo = [(":method", method), (":scheme", "http"), (":authority", "test"), (":path", path)]
    flags = ENDS_HEAD | (ENDS_STREAM if ends else 0)
    return frame(HEADERS, flags, stream, head([*pseudo, *headers]))


@dataclass(frozen=True)
class Frame:
    """One that came."""

    kind: int
    flags: int
    stream: int
    payload: bytes
    headers: dict[str, str]

    @property
    def code(self) -> int:
        """Of a reset, or of a goodbye."""
        at = 4 if self.kind == GOAWAY else 0
        return int.from_bytes(self.payload[at : at + 4], "big")

    @property
    def last(self) -> int:
        """The last stream that a goodbye speaks of."""
        return int.from_bytes(self.payload[:4], "big")


class FrameClient:
    """One connection, its preface sent."""

    def __init__(self, client: Client, *pairs: tuple[int, int]) -> None:
        self.client = client
        self._decoder = Decoder()
        # Why streams were broken off.
        self.codes: dict[int, int] = {}
        client.send(PREFACE + settings(*pairs))

    def flood(self, frames: bytes, *, piece: int = 16_384) -> int:
        """Send as long as somebody listens, and read meanwhile; gives how many bytes were sent."""
        for at in range(0, len(frames), piece):
            if not self.client.take_in() or not self.client.try_send(frames[at : at + piece]):
                return at
        return len(frames)

    def frames(self) -> Iterator[Frame]:
        """All that come until the connection ends."""
        while True:
            try:
                first = self.client.read_exactly(9)
                payload = self.client.read_exactly(int.from_bytes(first[:3], "big"))
            except ClosedError:
                return
            kind, flags, stream = first[3], first[4], int.from_bytes(first[5:], "big")
            packed = self._decoder.decode(payload) if kind == HEADERS else []
            headers = {str(name): str(value) for name, value in packed}
            yield Frame(kind, flags, stream, payload, headers)

    def until(self, kind: int, stream: int | None = None) -> Frame:
        """Pass over what comes before it."""
        for each in self.frames():
            if each.kind == kind and stream in (None, each.stream):
                return each
        raise AssertionError(f"the connection ended before a frame of kind {kind}")

    def goodbye(self) -> int:
        """Why the connection ends."""
        return self.until(GOAWAY).code

    def answer(self, stream: int) -> str:
        """The status of an answer, `reset`, or `goodbye`."""
        for each in self.frames():
            if each.stream == stream and each.kind in (HEADERS, RESET):
                return each.headers.get(":status", "reset")
            if each.kind == GOAWAY:
                return "goodbye"
        raise AssertionError(f"the connection ended before an answer to {stream}")

    def answers(self, count: int) -> dict[int, str]:
        """The statuses of so many answers, or `reset`, by stream: fewer, if the connection ends before."""
        came: dict[int, str] = {}
        for each in self.frames():
            if each.kind in (HEADERS, RESET):
                came.setdefault(each.stream, each.headers.get(":status", "reset"))
            if each.kind == RESET:
                self.codes[each.stream] = each.code
            if len(came) == count or each.kind == GOAWAY:
                break
        return came

    def body(self, stream: int) -> bytes:
        """The rest of an answer, its windows opened as it comes."""
        body = b""
        for each in self.frames():
            if each.stream != stream or each.kind not in (DATA, RESET):
                continue
            assert each.kind == DATA, each
            body += each.payload
            if each.payload:
                self.client.send(window(0, len(each.payload)) + window(stream, len(each.payload)))
            if each.flags & ENDS_STREAM:
                return body
        raise AssertionError("the connection ended before the body")
