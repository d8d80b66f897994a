"""`uvicorn.protocols.http.flow_control`: what programs take of it for protocols of their own.

Not the flow of our connections, which is Rust's.

Invariant: each does by itself what uvicorn's does.
"""

import asyncio
from typing import Any

CLOSE_HEADER = (b"connection", b"close")
HIGH_WATER_LIMIT = 65536
_BODY = b"Service Unavailable"


class FlowControl:
    """Whether a transport of asyncio's is to read, and may be written to."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False
        self._writable = asyncio.Event()
        self._writable.set()

    async def drain(self) -> None:
        """Until it may be written to."""
        await self._writable.wait()

    def pause_reading(self) -> None:
        """Read no more for now."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """As asyncio tells a protocol."""
        self.write_paused = True
        self._writable.clear()

    def resume_writing(self) -> None:
        """The same."""
        self.write_paused = False
        self._writable.set()


async def service_unavailable(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - an application
    """Answers 503."""
    length = str(len(_BODY)).encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length), CLOSE_HEADER]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY, "more_body": False})
