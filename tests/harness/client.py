"""A raw socket that can read one HTTP/1.1 answer.

Not lenient: a malformed head or chunk fails the test, an early end of a body is `ClosedError`.
Invariant: `read_response` takes exactly one answer off the wire, whatever follows it stays for the next call.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from bridgehead.testing.clients import connected, resets

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

Address = tuple[str, int] | str


class ClosedError(Exception):
    """The server closed the connection; `data` is what came of the answer before."""

    def __init__(self, data: bytes, reason: str = "end of stream") -> None:
        super().__init__(f"{reason} after {data[-200:]!r}")
        self.data = data


def request(
    target: str,
    *,
    method: str = "GET",
    version: str = "1.1",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    host: str | None = "test",
) -> bytes:
    """The bytes of a request that is right unless the arguments are not."""
    lines = [f"{method} {target} HTTP/{version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@dataclass(frozen=True, kw_only=True)
class Response:
    """One answer as it came."""

    version: str
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    framing: str
    head: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        values = self.all(name)
        assert len(values) <= 1, f"{name} came {len(values)} times: {values}"
        return values[0] if values else None

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def closes(self) -> bool:
        return "close" in (self.header("connection") or "").lower()


class Client:
    """One connection. Every wait ends after `timeout` seconds with an error."""

    def __init__(self, address: Address, *, timeout: float = 15.0, receive_buffer: int | None = None) -> None:
        self.socket = connected(address, timeout=timeout, receive_buffer=receive_buffer)
        if self.socket.family != socket.AF_UNIX:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self.is_websocket = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- writing

    @property
    def port(self) -> int:
        """Our own port: how the server's log names this connection."""
        port = self.socket.getsockname()[1]
        assert isinstance(port, int)
        return port

    def send(self, data: bytes | memoryview) -> None:
        self.socket.sendall(data)

    def try_send(self, data: bytes) -> bool:
        """Send to a server that may have closed already; tells whether it took the bytes."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def send_until_paused(self, data: bytes, *, pause: float = 1.0) -> int:
        """Send until the server has taken nothing for `pause` seconds; how many bytes it took."""
        sent = 0
        view = memoryview(data)
        self.socket.setblocking(False)
        try:
            while sent < len(data) and select.select([], [self.socket], [], pause)[1]:
                with contextlib.suppress(BlockingIOError):
                    sent += self.socket.send(view[sent : sent + 262_144])
        finally:
            self.socket.settimeout(15.0)
        return sent

    def ask(
        self,
        target: str,
        *,
        method: str = "GET",
        version: str = "1.1",
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Response:
        self.send(request(target, method=method, version=version, headers=headers, body=body))
        return self.read_response(method=method)

    # --- reading

    def read_some(self) -> bytes:
        """What is there, at least one byte; nothing at the end of the stream."""
        if self._buffer:
            data, self._buffer = self._buffer, b""
            return data
        return self._receive()

    def read_exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._fill()
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def read_until(self, mark: bytes) -> bytes:
        """Everything up to and with `mark`."""
        while mark not in self._buffer:
            self._fill()
        end = self._buffer.index(mark) + len(mark)
        data, self._buffer = self._buffer[:end], self._buffer[end:]
        return data

    def read_to_end(self) -> bytes:
        """All bytes until the server closes; a reset raises `ClosedError`."""
        data = bytearray(self._buffer)
        self._buffer = b""
        while True:
            try:
                more = self._receive()
            except ConnectionResetError:
                raise ClosedError(bytes(data), "reset") from None
            if not more:
                return bytes(data)
            data += more

    def read_to_any_end(self) -> bytes:
        """All bytes until the server closes, be it by a reset."""
        try:
            return self.read_to_end()
        except ClosedError as closed:
            return closed.data

    def read_head(self) -> tuple[str, int, str, list[tuple[str, str]], bytes]:
        head = self.read_until(b"\r\n\r\n")
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        version, status, reason = (first + " ").split(" ", 2)
        assert version in ("HTTP/1.1", "HTTP/1.0"), head
        headers = []
        for line in lines:
            name, colon, value = line.partition(":")
            assert colon, head
            assert name == name.strip(), head
            headers.append((name, value.strip(" \t")))
        return version.removeprefix("HTTP/"), int(status), reason.strip(), headers, head

    def read_response(self, *, method: str = "GET") -> Response:
        version, status, reason, headers, head = self.read_head()
        lower = {name.lower(): value for name, value in headers}
        if method == "HEAD" or status < 200 or status in (204, 304):
            framing, body = "none", b""
        elif "transfer-encoding" in lower:
            assert lower["transfer-encoding"].lower() == "chunked", head
            assert "content-length" not in lower, head
            framing, body = "chunked", b"".join(self.read_chunks())
        elif "content-length" in lower:
            framing, body = "length", self.read_exactly(int(lower["content-length"]))
        else:
            framing, body = "close", self.read_to_end()
        return Response(
            version=version,
            status=status,
            reason=reason,
            headers=headers,
            body=body,
            framing=framing,
            head=head,
        )

    def read_chunk(self) -> bytes:
        """One chunk of a chunked body; the last one is empty."""
        line = self.read_until(b"\r\n")
        size = int(line[:-2].decode("ascii"), 16)
        chunk = self.read_exactly(size)
        assert self.read_exactly(2) == b"\r\n", "a chunk ended without CRLF"
        return chunk

    def read_chunks(self) -> list[bytes]:
        chunks = []
        while chunk := self.read_chunk():
            chunks.append(chunk)
        return chunks

    def is_readable(self, seconds: float = 0.0) -> bool:
        return bool(self._buffer) or bool(select.select([self.socket], [], [], seconds)[0])

    def take_in(self) -> bool:
        """Keep what is there, so that no reset can take it; tells whether more may come."""
        while select.select([self.socket], [], [], 0)[0]:
            try:
                data = self._receive()
            except ConnectionResetError:
                return False
            if not data:
                return False
            self._buffer += data
        return True

    def assert_closed(self) -> None:
        """Nothing more comes but the end."""
        rest = self.read_to_any_end()
        assert rest == b"", f"more than the answer came: {rest[:200]!r}"

    def assert_open(self) -> None:
        """Another request is answered on this connection."""
        assert self.ask("/hello").body == b"hello"

    def data_segments_received(self) -> int:
        """`tcpi_data_segs_in`: how many segments with bytes the kernel has seen."""
        assert sys.platform == "linux"
        facts = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        count = struct.unpack_from("I", facts, 152)[0]
        assert isinstance(count, int)
        return count

    def _receive(self) -> bytes:
        return self.socket.recv(262_144)

    def _fill(self) -> None:
        try:
            more = self._receive()
        except ConnectionResetError:
            raise ClosedError(self._buffer, "reset") from None
        if not more:
            raise ClosedError(self._buffer)
        self._buffer += more

    # --- leaving

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def half_close_quietly(self) -> None:
        """As `half_close`, on a connection that the server may have reset."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Leave with an RST: nobody can take this for a half-closed client."""
        resets(self.socket)
        self.socket.close()

    def close(self) -> None:
        self.socket.close()
