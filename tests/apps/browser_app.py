"""A page that asks for everything a browser can, and prints what the browser tells of it.

Run by itself: `serve browser_app:app --ssl-self-signed`.
"""

from __future__ import annotations

import json
from pathlib import Path

from kit import Receive, Routes, Scope, Send, answer, end, more, read_body, start

routes = Routes()

PAGE = Path(__file__).with_name("browser_page.html").read_bytes()


@routes.at("")
async def show(_scope: Scope, _receive: Receive, send: Send) -> None:
    await start(send, (b"content-type", b"text/html"))
    await end(send, PAGE)


@routes.at("style.css")
async def show_style(_scope: Scope, _receive: Receive, send: Send) -> None:
    await start(send, (b"content-type", b"text/css"))
    await end(send, b"body { color: black }")


@routes.at("favicon.ico")
async def show_nothing(_scope: Scope, _receive: Receive, send: Send) -> None:
    await start(send, (b"content-type", b"image/x-icon"))
    await end(send)


@routes.at("number")
async def show_number(scope: Scope, _receive: Receive, send: Send) -> None:
    await answer(send, scope["query_string"])


@routes.at("echo")
async def echo(_scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, await read_body(receive))


@routes.at("events")
async def show_events(_scope: Scope, receive: Receive, send: Send) -> None:
    await start(send, (b"content-type", b"text/event-stream"))
    for number in range(3):
        await more(send, b"data: %d\n\n" % number)
    # Until the browser closes it.
    while (await receive())["type"] != "http.disconnect":
        pass


@routes.at("endless")
async def show_without_end(_scope: Scope, _receive: Receive, send: Send) -> None:
    await start(send)
    try:
        while True:
            await more(send, b"x" * 10_000)
    except OSError:
        print("left the endless one", flush=True)


@routes.at("told")
async def hear(_scope: Scope, receive: Receive, send: Send) -> None:
    told = await read_body(receive)
    await answer(send)
    print("told", json.dumps(json.loads(told)), flush=True)


async def speak(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept", "subprotocol": "chat"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})
    print("left the socket", message["code"], message["reason"], flush=True)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await speak(receive, send)
    else:
        await routes(scope, receive, send)
