"""One request of a canary and everything that may come back, to the byte.

Not a client library: it looks at what clients hide, such as bytes after an answer, and never asks again.

Invariant: `is_sent` is true from when the kernel has taken the last byte of the request, and never before.
"""

import asyncio
import contextlib
from dataclasses import dataclass

from bridgehead.testing.promise import Outcome

# Time for a second answer to come, if there is one.
_SURPLUS = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    outcome: Outcome
    status: int | None = None
    body: bytes = b""
    answers: int = 1
    may_be_kept: bool = False
    said: str = ""


class Connection:
    """A connection that is made when it is first needed."""

    def __init__(self, address: tuple[str, int] | str) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.asked = 0
        self.is_sent = False

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Both halves."""
        if self._streams is None:
            if isinstance(self._address, str):
                self._streams = await asyncio.open_unix_connection(self._address)
            else:
                self._streams = await asyncio.open_connection(*self._address)
            # `drain` then waits until the kernel has all of it.
            self._streams[1].transport.set_write_buffer_limits(0)
        self.asked += 1
        self.is_sent = False
        return self._streams

    def close(self) -> None:
        """Leave."""
        if self._streams is not None:
            self._streams[1].close()


async def ask(connection: Connection, path: str, request: int, *, keep: bool) -> Reply:
    """Send one request and read all that comes of it."""
    try:
        reader, writer = await connection.open()
    except OSError as problem:
        return Reply(outcome=Outcome.UNREACHED, said=str(problem))
    head = [f"GET {path} HTTP/1.1", "Host: canary", f"X-Canary: {request}"]
    head += [] if keep else ["Connection: close"]
    got = bytearray()
    try:
        writer.write("\r\n".join([*head, "", ""]).encode())
        await writer.drain()
        connection.is_sent = True
        return await _read(reader, got)
    except (OSError, asyncio.IncompleteReadError, ValueError) as problem:
        said = f"{type(problem).__name__}: {problem}"
        if isinstance(problem, asyncio.IncompleteReadError):
            got += problem.partial
        return Reply(outcome=Outcome.BROKEN if got else Outcome.CLOSED, said=said)


async def _read(reader: asyncio.StreamReader, got: bytearray) -> Reply:
    head = await reader.readuntil(b"\r\n\r\n")
    got += head
    first, *lines = head.decode("latin-1").split("\r\n")
    status = int(first.split(" ")[1])
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if fields.get("transfer-encoding") == "chunked":
        body = await _chunks(reader)
    elif "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    else:
        body = await reader.read(-1)
    surplus = b""
    with contextlib.suppress(TimeoutError):
        # Nobody asked for more, so more is an answer too many.
        surplus = await asyncio.wait_for(reader.read(65536), _SURPLUS)
    return Reply(
        outcome=Outcome.REFUSED if status == 503 else Outcome.ANSWERED,
        status=status,
        body=body,
        answers=2 if surplus else 1,
        may_be_kept=fields.get("connection", "").lower() != "close" and not reader.at_eof(),
    )


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return bytes(body)
