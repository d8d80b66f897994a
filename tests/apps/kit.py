"""What the test applications share: ASGI's types, a router, a noticeboard, bells.

Not a framework: no handler here does anything for the server under test.
Invariant: a note left by a handler is read by exactly one `GET /notes/NAME`, which waits for it.
"""

# ruff: noqa: ARG001, ARG002 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

WAIT_SECONDS = 12.0


def option(scope: Scope, name: str, default: str = "") -> str:
    """The value of `?name=` in the target."""
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get(name, [default])[0]


async def answer(
    send: Send,
    body: bytes = b"",
    *,
    status: int = 200,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    """A complete response with its length declared."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*(headers or []), length]})
    await send({"type": "http.response.body", "body": body})


async def answer_json(send: Send, value: object, *, status: int = 200) -> None:
    await answer(
        send,
        json.dumps(value, default=repr).encode(),
        status=status,
        headers=[(b"content-type", b"application/json")],
    )


async def start(send: Send, *headers: tuple[bytes, bytes], status: int = 200) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def more(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def end(send: Send, body: bytes = b"") -> None:
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Receive) -> bytes:
    """The whole body; raises `EOFError` when the client left in the middle."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise EOFError("the client left before the end of its body")
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body


class Routes:
    """An application made of handlers, found by the first segment of the path."""

    def __init__(self) -> None:
        self._handlers: dict[str, App] = {}
        self._notes: dict[str, asyncio.Queue[object]] = defaultdict(asyncio.Queue)
        self._bells: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.seen: list[str] = []
        self._handlers |= {
            "hello": hello,
            "notes": self._show_note,
            "ring": self._ring,
            "seen": self._show_seen,
        }

    def at(self, name: str) -> Callable[[App], App]:
        def register(handler: App) -> App:
            self._handlers[name] = handler
            return handler

        return register

    def note(self, name: str, value: object) -> None:
        """Leave a value for the test."""
        self._notes[name].put_nowait(value)

    async def wait_bell(self, name: str) -> None:
        """Wait until the test rings."""
        await self._bells[name].wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await plain_lifespan(receive, send)
            return
        first = scope["path"].lstrip("/").partition("/")[0]
        if first not in ("notes", "ring", "seen"):
            self.seen.append(scope["path"])
        handler = self._handlers.get(first)
        if handler is None:
            await answer(send, b"no such handler", status=404)
        else:
            await handler(scope, receive, send)

    async def _show_note(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].removeprefix("/notes/")
        queue = self._notes[name]
        if scope["query_string"] == b"now":
            values = [queue.get_nowait() for _ in range(queue.qsize())]
            for value in values:
                queue.put_nowait(value)
            await answer_json(send, values)
            return
        try:
            value = await asyncio.wait_for(queue.get(), WAIT_SECONDS)
        except TimeoutError:
            await answer(send, b"no such note", status=504)
        else:
            await answer_json(send, value)

    async def _ring(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._bells[scope["path"].removeprefix("/ring/")].set()
        await answer(send, b"rung")

    async def _show_seen(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_json(send, self.seen)


async def plain_lifespan(receive: Receive, send: Send) -> None:
    """A lifespan that has nothing to do."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"hello", headers=[(b"content-type", b"text/plain")])
