"""WebSockets of every behaviour, good and bad. Run by itself: `serve websocket_app:app`."""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from kit import Message, Receive, Routes, Scope, Send, answer_json, option

from bridgehead import ClientDisconnected, MisuseError

http = Routes()
websockets = Routes()
ACCEPT = {"type": "websocket.accept"}
running: set[asyncio.Task[Any]] = set()
flooded = [0]  # messages of the last flood


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The router: notes and bells are HTTP's."""
    if scope["type"] != "websocket":
        return await http(scope, receive, send)
    task = asyncio.current_task()
    assert task is not None
    running.add(task)
    try:
        await websockets(scope, receive, send)
    finally:
        running.discard(task)


async def accept(receive: Receive, send: Send, **more: Any) -> None:
    assert await receive() == {"type": "websocket.connect"}
    await send({**ACCEPT, **more})


def text(words: str) -> Message:
    return {"type": "websocket.send", "text": words}


def shown(message: Message) -> dict[str, Any]:
    """A message as JSON has it."""
    return {key: repr(value) if isinstance(value, bytes) else value for key, value in message.items()}


async def outcome(of: Awaitable[object]) -> str:
    """What an `await` came to."""
    try:
        await of
    except (ClientDisconnected, MisuseError) as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


@http.at("ended")
async def wait_until_all_have_ended(scope: Scope, receive: Receive, send: Send) -> None:
    while running:
        await asyncio.wait(list(running))
    await answer_json(send, len(running))


@http.at("scope")
async def show_an_http_scope(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, scope["type"])


@websockets.at("echo")
async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})
    http.note(option(scope, "note", "end"), shown(message))


@websockets.at("scope")
async def show_the_scope(scope: Scope, receive: Receive, send: Send) -> None:
    chosen = scope["subprotocols"][-1] if scope["subprotocols"] else None
    await accept(receive, send, subprotocol=chosen, headers=[(b"x-mine", b"yes"), (b"Connection", b"x")])
    http.note("scope", {key: value for key, value in scope.items() if key != "extensions"})
    http.note("extensions", sorted(scope["extensions"]))


@websockets.at("size")
async def tell_sizes(scope: Scope, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    while (message := await receive())["type"] == "websocket.receive":
        payload = message.get("bytes")
        await send(text(str(len(message["text"] if payload is None else payload))))
    http.note(option(scope, "note", "end"), shown(message))


@websockets.at("end")
async def end_as_told(scope: Scope, receive: Receive, send: Send) -> None:
    """Ends before or after its acceptance, by what `how` says, and tells what it is told then."""
    how, when = option(scope, "how"), option(scope, "when", "after")
    if when == "after":
        await accept(receive, send)
    match how:
        case "return":
            return
        case "raise":
            raise RuntimeError("meant to be seen")
        case "exit":
            raise SystemExit(3)
        case "code":
            code, reason = int(option(scope, "code")), option(scope, "reason")
            await send({"type": "websocket.close", "code": code, "reason": reason})
        case "plain":
            await send({"type": "websocket.close"})
    if when == "before":
        assert await receive() == {"type": "websocket.connect"}
    http.note(option(scope, "note", "end"), shown(await receive()))
    http.note("again", await outcome(receive()))
    http.note("late", [await outcome(send(text("late"))), await outcome(send({"type": "websocket.close"}))])


@websockets.at("misuse")
async def misuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends what it is given as Python, first before and then after its acceptance."""
    message = eval(option(scope, "message"))
    if option(scope, "when") == "before":
        http.note("misuse", await outcome(send(message)))
        await accept(receive, send)
        return
    await accept(receive, send)
    http.note("misuse", await outcome(send(message)))
    await send(text("still open"))


@websockets.at("deny")
async def deny(scope: Scope, receive: Receive, send: Send) -> None:
    assert await receive() == {"type": "websocket.connect"}
    status = int(option(scope, "status", "418"))
    start = {"type": "websocket.http.response.start", "status": status, "headers": [(b"x-why", b"tea")]}
    await send(start)
    http.note("misuse", await outcome(send(dict(ACCEPT))))
    for piece in (b"I am ", b"a tea"):
        await send({"type": "websocket.http.response.body", "body": piece, "more_body": True})
        await http.wait_bell("pour")
    await send({"type": "websocket.http.response.body", "body": b"pot"})
    late = [text("late"), {"type": "websocket.close"}, {"type": "websocket.http.response.body"}]
    http.note("late", [(await outcome(send(message))).partition(":")[0] for message in late])


@websockets.at("deny-half")
async def deny_and_break_off(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "websocket.http.response.start", "status": 400})
    await send({"type": "websocket.http.response.body", "body": b"half", "more_body": True})


@websockets.at("late")
async def accept_when_told(scope: Scope, receive: Receive, send: Send) -> None:
    assert await receive() == {"type": "websocket.connect"}
    http.note("here", True)
    http.note("gone", shown(await receive()))
    http.note("late", await outcome(send(dict(ACCEPT))))
    await send(text("never"))


@websockets.at("never")
async def answer_no_handshake(scope: Scope, receive: Receive, send: Send) -> None:
    way = option(scope, "way")
    http.note(f"{way}-began", True)
    assert await receive() == {"type": "websocket.connect"}
    try:
        match way:
            case "receive":
                await receive()
            case "half":
                await send({"type": "websocket.http.response.start", "status": 400})
                await send({"type": "websocket.http.response.body", "body": b"half", "more_body": True})
            case "block":
                while not Path(option(scope, "until")).exists():
                    time.sleep(0.01)
        await asyncio.Event().wait()
    except asyncio.CancelledError as error:
        http.note(way, type(error).__name__)
        raise


@websockets.at("wait")
async def wait_for_the_end(scope: Scope, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    try:
        http.note(option(scope, "note", "end"), shown(await receive()))
    finally:
        http.note("finally", True)


@websockets.at("two")
async def receive_twice_at_once(scope: Scope, receive: Receive, send: Send) -> None:
    """Two tasks receive; what each got last."""
    await accept(receive, send)

    async def all_of_it() -> str:
        got = 0
        try:
            while (message := await receive())["type"] == "websocket.receive":
                got += 1
                await send(text(str(got)))
        except ClientDisconnected:
            return "ClientDisconnected"
        return str(message["type"])

    http.note("two", sorted(await asyncio.gather(all_of_it(), all_of_it())))


@websockets.at("sends-at-once")
async def send_from_a_task_each(scope: Scope, receive: Receive, send: Send) -> None:
    """A task for each message: each begins before the one before it has ended."""
    await accept(receive, send)
    await asyncio.gather(*[asyncio.ensure_future(send(text(str(number)))) for number in range(500)])


@websockets.at("ready")
async def count_suspensions(scope: Scope, receive: Receive, send: Send) -> None:
    """How often it has to wait while twenty messages are there; turns that others are given do not count."""
    await accept(receive, send)
    first = await receive()
    await http.wait_bell("all-there")
    waited = 0
    for _ in range(20):
        waited += sum(each is not None for each in receive().__await__())
        waited += sum(each is not None for each in send(text("x")).__await__())
    await send(text(f"{first['text']} {waited}"))


@websockets.at("held")
async def hold_until_told(scope: Scope, receive: Receive, send: Send) -> None:
    """Receives nothing before the bell, then counts."""
    await accept(receive, send)
    await http.wait_bell("receive")
    count = 0
    while (message := await receive())["type"] == "websocket.receive":
        count += 1
        if message.get("text") == "last":
            await send(text(str(count)))


@http.at("flooded")
async def say_how_much(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(0.01)
    await answer_json(send, flooded[0])


@websockets.at("flood")
async def send_without_end(scope: Scope, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    size, count = int(option(scope, "size")), 0
    try:
        while True:
            await send({"type": "websocket.send", "bytes": bytes(size)})
            count += 1
            flooded[0] = count
            if count == 100:
                http.note("flowing", count)
    except ClientDisconnected:
        http.note("sent", count)


@websockets.at("count")
async def send_a_count(scope: Scope, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    for number in range(int(option(scope, "of"))):
        await send(text(f"{number}"))


@websockets.at("block")
async def block_the_loop(scope: Scope, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    while (await receive())["type"] == "websocket.receive":
        await send(text("blocks"))
        time.sleep(float(option(scope, "seconds")))
        await send(text("is back"))


@websockets.at("push")
async def send_one_message_then_wait(scope: Scope, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    await send(text("first"))
    await http.wait_bell("pushed")


@websockets.at("close-race")
async def close_while_the_client_may(scope: Scope, receive: Receive, send: Send) -> None:
    await accept(receive, send)
    await receive()
    await send({"type": "websocket.close", "code": 3001, "reason": "bye"})
    message = await receive()
    http.note("race", [message["type"], message["code"]])
