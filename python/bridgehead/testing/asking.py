"""One request of a canary and everything that may come back, to the byte.

Not a client library: it looks at what clients hide, such as bytes after an answer, and never asks again.

Invariant: `is_sent` is true from when the kernel has taken the last byte of the request, and never before.
"""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass

from bridgehead.testing.promise import Outcome

# Time for a second answer to come, if there is one.
_SURPLUS = 0.002
# The same where the server has to close: only one that stays open takes this long.
_ENDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    outcome: Outcome
    status: int | None = None
    body: bytes = b""
    may_be_kept: bool = False
    said: str = ""


class Connection:
    """A connection that is made when it is first needed, by TLS if there is a context for it."""

    def __init__(self, address: tuple[str, int] | str, tls: ssl.SSLContext | None = None) -> None:
        self._address, self._tls = address, tls
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.asked = 0
        self.is_sent = False

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Both halves."""
        if self._streams is None:
            if isinstance(self._address, str):
                self._streams = await asyncio.open_unix_connection(self._address)
            else:
                self._streams = await asyncio.open_connection(*self._address, ssl=self._tls)
            # `drain` then waits until the kernel has all of it; by TLS until it was offered all of it, and it
            # takes what is as short as a request.
            self._streams[1].transport.set_write_buffer_limits(0)
        self.asked += 1
        self.is_sent = False
        return self._streams

    async def has_more(self, *, is_kept: bool) -> bool:
        """Whether more comes than was asked for. A connection that is not kept is read to its end."""
        if self._streams is None:
            return False
        with contextlib.suppress(TimeoutError, OSError):
            return bool(await asyncio.wait_for(self._streams[0].read(1), _SURPLUS if is_kept else _ENDS))
        return False

    @property
    def is_over(self) -> bool:
        """Whether the server has closed it."""
        return self._streams is None or self._streams[0].at_eof()

    def close(self) -> None:
        """Leave."""
        if self._streams is not None and self._tls is not None:
            # The other's word would be waited for, and there may be no other.
            self._streams[1].transport.abort()
        elif self._streams is not None:
            self._streams[1].close()


async def ask(
    connection: Connection, path: str, request: int, *, keep: bool, body: tuple[bytes, ...] = ()
) -> Reply:
    """Send one request and read all that comes of it.

    A body of one piece has a declared length; one of several is chunked.
    """
    try:
        reader, writer = await connection.open()
    except Exception as problem:
        return Reply(outcome=Outcome.UNREACHED, said=str(problem))
    head = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", "Host: canary", f"X-Canary: {request}"]
    head += [] if keep else ["Connection: close"]
    if body:
        head.append(f"Content-Length: {len(body[0])}" if len(body) == 1 else "Transfer-Encoding: chunked")
    got = bytearray()
    try:
        writer.write("\r\n".join([*head, "", ""]).encode())
        for piece in body if len(body) == 1 else [*map(_chunked, body), *([b"0\r\n\r\n"] if body else [])]:
            await writer.drain()
            writer.write(piece)
        await writer.drain()
        connection.is_sent = True
        return await _read(reader, got, keep=keep)
    except Exception as problem:
        said = f"{type(problem).__name__}: {problem}"
        if isinstance(problem, asyncio.IncompleteReadError):
            got += problem.partial
        # What is no HTTP, or too much of it, has come as well.
        is_closed = not got and isinstance(problem, (OSError, asyncio.IncompleteReadError))
        return Reply(outcome=Outcome.CLOSED if is_closed else Outcome.BROKEN, said=said)


def _chunked(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


async def _read(reader: asyncio.StreamReader, got: bytearray, *, keep: bool) -> Reply:
    status = 100
    while status < 200:
        # An interim answer is none: the one that counts follows.
        head = await reader.readuntil(b"\r\n\r\n")
        got += head
        first, *lines = head.decode("latin-1").split("\r\n")
        status = _status(first)
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    is_kept = keep and fields.get("connection", "").lower() != "close"
    if fields.get("transfer-encoding") == "chunked":
        body = await _chunks(reader)
    elif "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    else:
        body = await reader.read(-1)
    return Reply(
        outcome=Outcome.REFUSED if status == 503 else Outcome.ANSWERED,
        status=status,
        body=body,
        may_be_kept=is_kept and not reader.at_eof(),
    )


def _status(line: str) -> int:
    version, _, rest = line.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise ValueError(f"{line[:100]!r} begins no answer")
    return int(rest[:3])


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    # Behind a size there may be extensions of the chunk, and behind the last one fields: neither is body.
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return bytes(body)
