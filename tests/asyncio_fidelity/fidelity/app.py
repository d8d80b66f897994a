"""Runs a case in the handler of the request that names it: `POST /case/NAME?step=…`.

`step` says from where the case is driven: in the task's `first` step, once the network has `resumed` it, or
once the loop has (`looped`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import closing
from typing import Any

from fidelity.account import account
from fidelity.registry import all_cases
from fidelity.world import Errand

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CASES = all_cases()
errands: dict[str, Errand] = {}
numbers = itertools.count()


class Served:
    """The surroundings of a case in a handler."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope = scope
        self._receive = receive

    async def elsewhere(self, errand: Errand) -> None:
        name = f"/errand/{next(numbers)}"
        errands[name] = errand
        host, port = self._scope["server"]
        reader, writer = await asyncio.open_connection(host, port)
        with closing(writer):
            writer.write(f"GET {name} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
            head = await reader.read()
        assert head.startswith(b"HTTP/1.1 200"), head

    async def wait_for_ever(self) -> None:
        while (await self._receive())["type"] == "http.request":
            pass


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The application."""
    if scope["type"] == "lifespan":
        await serve_lifespan(receive, send)
        return
    path: str = scope["path"]
    if path.startswith("/errand/"):
        await errands.pop(path)()
        await answer(send, b"")
        return
    case = CASES[path.removeprefix("/case/")].function
    step = scope["query_string"].removeprefix(b"step=")
    if step == b"resumed":
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"ready", "more_body": True})
        # The body is sent by who has read this much.
        assert (await receive())["body"] == b"go"
    elif step == b"looped":
        await asyncio.sleep(0)
    facts = json.dumps(await account(case, Served(scope, receive))).encode()
    if step == b"resumed":
        await send({"type": "http.response.body", "body": facts})
    else:
        await answer(send, facts)


async def answer(send: Send, body: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def serve_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
