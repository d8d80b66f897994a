"""What the corpus of faults is sent to: every path answers with its body, and all that began are counted.

`/canary` answers a canary, whose requests are noted in its ledger. Run by itself: `serve corpus_app:app`.
"""

from __future__ import annotations

import asyncio

from kit import Receive, Routes, Scope, Send, answer, answer_json, end, more, option, read_body, start

from bridgehead.testing import Ledgered
from bridgehead.testing.canary_app import answer as answer_canary

routes = Routes()
begun = 0


async def corpus(scope: Scope, receive: Receive, send: Send) -> None:
    global begun
    if scope["type"] == "lifespan":
        await routes(scope, receive, send)
    elif scope["type"] == "websocket":
        await tell_lengths(receive, send)
    elif scope["path"] == "/canary":
        await answer_canary(scope, receive, send)
    elif scope["path"] == "/begun":
        await answer_json(send, begun)
    elif scope["path"] == "/tasks":
        await answer_json(send, len(asyncio.all_tasks()))
    else:
        begun += 1
        if scope["path"].strip("/").partition("/")[0] in HANDLERS:
            await routes(scope, receive, send)
        else:
            await echo(receive, send)


async def tell_lengths(receive: Receive, send: Send) -> None:
    """Of each message, in one that is long enough to be compressed."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": str(len(message["text"])).rjust(100)})


async def echo(receive: Receive, send: Send) -> None:
    try:
        body = await read_body(receive)
    except EOFError:
        return
    await answer(send, body)


@routes.at("noread")
async def answer_without_reading(_scope: Scope, _receive: Receive, send: Send) -> None:
    await answer(send, b"not read")


@routes.at("messages")
async def count_messages(_scope: Scope, receive: Receive, send: Send) -> None:
    """How many messages the body came in, and how many bytes that was."""
    messages, size, more_body = 0, 0, True
    while more_body:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        messages, size = messages + 1, size + len(message["body"])
        more_body = message["more_body"]
    await answer_json(send, {"messages": messages, "bytes": size})


@routes.at("stream")
async def stream(scope: Scope, _receive: Receive, send: Send) -> None:
    """As many bytes as `n` says, so many at a time; leaves a note when it has ended, in whatever way."""
    size, name, piece = int(option(scope, "n")), option(scope, "name"), int(option(scope, "piece") or 65_536)
    try:
        await start(send)
        for _ in range(size // piece):
            await more(send, b"s" * piece)
        await end(send)
    finally:
        if name:
            routes.note(name, "ended")


@routes.at("events")
async def events(scope: Scope, _receive: Receive, send: Send) -> None:
    """One event, silence for `quiet` seconds, another event."""
    await start(send, (b"content-type", b"text/event-stream"))
    await more(send, b"data: one\n\n")
    await asyncio.sleep(float(option(scope, "quiet")))
    await end(send, b"data: two\n\n")


@routes.at("sink")
async def read_slowly(scope: Scope, receive: Receive, send: Send) -> None:
    """Waits `pause` seconds before each piece."""
    size = 0
    while True:
        await asyncio.sleep(float(option(scope, "pause")))
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        if not message["more_body"]:
            break
    await answer_json(send, size)


@routes.at("elsewhere")
async def send_from_another_thread(_scope: Scope, receive: Receive, send: Send) -> None:
    """Tries both on a loop of another thread, then answers with what came of it."""

    async def wait_for_both() -> list[str]:
        came = []
        for attempt in (lambda: send({"type": "http.response.body"}), receive):
            try:
                await attempt()
                came.append("nothing")
            except Exception as problem:
                came.append(type(problem).__name__)
        return came

    await answer_json(send, await asyncio.to_thread(asyncio.run, wait_for_both()))


HANDLERS = {"noread", "messages", "stream", "events", "sink", "elsewhere", "notes", "ring"}
app = Ledgered(corpus)
