"""Handlers that wait in every way, and say what became of them."""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

from kit import Receive, Routes, Scope, Send, answer, more, option, start

app = routes = Routes()


@routes.at("wait")
async def wait_and_tell(scope: Scope, receive: Receive, send: Send) -> None:
    name, way = option(scope, "name"), scope["path"].removeprefix("/wait/")
    routes.note(f"{name}-began", True)
    left = threading.Event()
    try:
        if way == "sleep":
            await asyncio.sleep(3600)
        elif way == "receive":
            await receive()
            # A disconnect that is heard of first is no end by itself.
            await receive()
            await asyncio.sleep(3600)
        elif way == "future":
            await asyncio.get_running_loop().create_future()
        elif way == "thread":
            await asyncio.to_thread(left.wait)
        elif way == "after-a-piece":
            await start(send)
            await more(send, b"a piece")
            await asyncio.sleep(3600)
        else:
            await routes.wait_bell(name)
    except asyncio.CancelledError as error:
        routes.note(name, type(error).__name__)
        raise
    finally:
        left.set()
    routes.note(name, "rung")


@routes.at("ignore")
async def ignore_being_cancelled(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        try:
            await answer(send, b"too late")
        except OSError as error:
            routes.note(option(scope, "name"), type(error).__name__)


@routes.at("block")
async def hold_the_loop_until_a_file_is_there(scope: Scope, receive: Receive, send: Send) -> None:
    until = Path(option(scope, "until"))
    while not until.exists():
        time.sleep(0.01)
    await answer(send, b"too late")


@routes.at("read-later")
async def read_all_after_the_bell(scope: Scope, receive: Receive, send: Send) -> None:
    name, count, more_body = option(scope, "name"), 0, True
    routes.note(f"{name}-began", True)
    await routes.wait_bell(name)
    while more_body:
        message = await receive()
        assert message["type"] == "http.request"
        count, more_body = count + len(message["body"]), message["more_body"]
    await answer(send, str(count).encode())


@routes.at("work-on")
async def answer_and_work_until_the_bell(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"answered")
    await routes.wait_bell(option(scope, "name"))
    routes.note(option(scope, "name"), "done")
