"""An application for servers that run inside the tests' own process; each instance keeps its own book.

Not a framework: it answers by the first segment of the path.
"""

# ruff: noqa: ARG002 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BIG = b"b" * 65536


class App:
    """Says in `events` what happened to it, and serves a few paths."""

    def __init__(self, name: str = "app", *, fails: bool = False) -> None:
        self.name = name
        self.fails = fails
        self.events: list[str] = []
        self.began = threading.Event()
        self.on_request: Callable[[], object] = lambda: None
        self.thread: threading.Thread | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        handler: Any = getattr(self, "serve_" + (scope["path"].lstrip("/") or "hello"))
        await handler(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        try:
            await receive()
            self.events.append("startup")
            if self.fails:
                await send({"type": "lifespan.startup.failed", "message": "no database"})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self.events.append("shutdown")
            await send({"type": "lifespan.shutdown.complete"})
        except asyncio.CancelledError:
            self.events.append("lifespan cancelled")
            raise

    async def serve_hello(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.thread = threading.current_thread()
        self.on_request()
        await answer(send, f"hello from {self.name}".encode())

    async def serve_hang(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began.set()
        try:
            await asyncio.sleep(600)
        finally:
            self.events.append("hang finally")

    async def serve_slow(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began.set()
        await asyncio.sleep(0.3)
        await answer(send, b"slow")

    async def serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """More than fits anywhere, each piece sent by the loop's own callback and not by the server's."""
        await send({"type": "http.response.start", "status": 200})
        for _ in range(64):
            await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": BIG, "more_body": True})
        await send({"type": "http.response.body"})

    async def serve_echo(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, message = b"", await receive()
        while message["more_body"]:
            body, message = body + message["body"], await receive()
        await answer(send, body + message["body"])


async def answer(send: Send, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": body})
