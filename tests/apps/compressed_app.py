"""Answers of every kind that a server might compress, and some that it must not.

Run by itself: `serve compressed_app:app --compress`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import os
import random
from pathlib import Path

from kit import Receive, Routes, Scope, Send, answer, end, more, option, start

app = routes = Routes()

TEXT = (b"content-type", b"text/plain; charset=utf-8")


def text(size: int) -> bytes:
    """The same words for everybody, not all of them the same."""
    words = random.Random(size)
    body = b" ".join(b"%d" % words.randrange(5000) for _ in range(size // 4 + 1))
    return body[:size]


def wanted(scope: Scope) -> list[tuple[bytes, bytes]]:
    """`?header=Name: value`, and the kind of text that `?kind=` says."""
    kind = (b"content-type", option(scope, "kind", "text/plain").encode())
    name, colon, value = option(scope, "header").partition(": ")
    return [kind, *([(name.encode(), value.encode())] if colon else [])]


@routes.at("whole")
async def whole(scope: Scope, receive: Receive, send: Send) -> None:
    """All at once, with its length."""
    status = int(option(scope, "status", "200"))
    await answer(send, text(int(option(scope, "size", "5000"))), status=status, headers=wanted(scope))


@routes.at("unasked")
async def unasked(scope: Scope, receive: Receive, send: Send) -> None:
    """All at once, without a length, whatever the method."""
    await start(send, TEXT)
    await end(send, text(int(option(scope, "size", "5000"))))


@routes.at("tagged")
async def tagged(scope: Scope, receive: Receive, send: Send) -> None:
    """304 for who has it already, as RFC 9110 compares."""
    asked = dict(scope["headers"]).get(b"if-none-match", b"")
    tag = (b"etag", b'"abc"')
    if asked.removeprefix(b"W/") == tag[1]:
        await start(send, tag, status=304)
        await end(send)
    else:
        await answer(send, text(5000), headers=[TEXT, tag])


@routes.at("pieces")
async def pieces(scope: Scope, receive: Receive, send: Send) -> None:
    """Piece by piece; `?declared` says how much it will be."""
    body = text(int(option(scope, "size", "500000")))
    declared = [(b"content-length", b"%d" % len(body))] if option(scope, "declared") else []
    await start(send, TEXT, *declared)
    for at in range(0, len(body), 1000):
        await more(send, body[at : at + 1000])
    await end(send)


@routes.at("incompressible")
async def incompressible(scope: Scope, receive: Receive, send: Send) -> None:
    """What no coding makes shorter, and calls itself text."""
    await answer(send, random.Random(1).randbytes(2000), headers=[TEXT])


@routes.at("noise")
async def noise(scope: Scope, receive: Receive, send: Send) -> None:
    """Which becomes no shorter than half of it; more than any buffer holds, and never in memory at once."""
    await start(send, TEXT)
    for _ in range(1000):
        await more(send, os.urandom(16_384).hex().encode())
    await end(send)


@routes.at("events")
async def events(scope: Scope, receive: Receive, send: Send) -> None:
    """An event whenever the test rings for it."""
    await start(send, (b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"))
    for number in range(3):
        await more(send, b"data: %d\n\n" % number)
        await routes.wait_bell(f"{option(scope, 'name')}-{number}")
    await end(send)


@routes.at("trailers")
async def trailers(scope: Scope, receive: Receive, send: Send) -> None:
    head = {"type": "http.response.start", "status": 200, "headers": [TEXT, (b"trailer", b"x-sum")]}
    await send({**head, "trailers": True})
    await more(send, text(2000))
    await end(send, text(2000))
    await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"6")]})


@routes.at("broken")
async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send, TEXT)
    await more(send, text(50_000))
    raise RuntimeError("broken off")


@routes.at("file")
async def file(scope: Scope, receive: Receive, send: Send) -> None:
    """This file, by its name or open."""
    path = Path(__file__)
    await start(send, TEXT)
    if option(scope, "open"):
        with path.open("rb") as opened:
            await send({"type": "http.response.zerocopysend", "file": opened})
    else:
        await send({"type": "http.response.pathsend", "path": str(path)})
