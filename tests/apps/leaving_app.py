"""Handlers that listen for their client's leaving while they answer it, and what they are told.

Run by itself: `serve leaving_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio

from kit import Receive, Routes, Scope, Send, answer, end, more, option, start

app = routes = Routes()


async def until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@routes.at("answer-late")
async def answer_once_the_client_was_said_to_have_left(scope: Scope, receive: Receive, send: Send) -> None:
    """In pieces with `?pieces=`, else whole."""
    await until_left(receive)
    pieces = int(option(scope, "pieces", "0"))
    if not pieces:
        await answer(send, b"late")
        return
    await start(send)
    for number in range(pieces):
        await more(send, b"%06d" % number)
        if number % 100 == 0:
            await asyncio.sleep(0)
    await end(send)


@routes.at("answer-beside")
async def answer_while_another_task_listens(scope: Scope, receive: Receive, send: Send) -> None:
    listening = asyncio.create_task(until_left(receive))
    await start(send)
    await more(send, b"before, ")
    await listening
    await more(send, b"after")
    await end(send)


@routes.at("send-until-refused")
async def send_until_nobody_is_there(scope: Scope, receive: Receive, send: Send) -> None:
    """Says that it was told, then what its sends come to; with `?push=` without listening."""
    await start(send)
    await more(send, b"begun")
    if not option(scope, "push"):
        await until_left(receive)
    routes.note(option(scope, "name"), "told")
    try:
        while True:
            await more(send, b"a piece")
            await asyncio.sleep(0.01)
    except OSError as error:
        routes.note(option(scope, "name"), type(error).__name__)
        raise


@routes.at("return-when-left")
async def return_without_an_answer(scope: Scope, receive: Receive, send: Send) -> None:
    """With `?begun=`, in the middle of one."""
    if option(scope, "begun"):
        await start(send)
        await more(send, b"begun")
    await until_left(receive)


@routes.at("fail-when-left")
async def fail_once_the_client_was_said_to_have_left(scope: Scope, receive: Receive, send: Send) -> None:
    await until_left(receive)
    raise RuntimeError("failed of itself")


@routes.at("wait-when-left")
async def say_so_and_wait_for_the_bell(scope: Scope, receive: Receive, send: Send) -> None:
    """Then answers; `?head=` has sent all that was declared before."""
    name = option(scope, "name")
    if option(scope, "declared"):
        await start(send, (b"content-length", b"8"))
        await more(send, b"declared")
    await until_left(receive)
    routes.note(name, "told")
    await routes.wait_bell(name)
    try:
        await (end(send) if option(scope, "declared") else answer(send, b"rung"))
    except OSError as error:
        routes.note(name, type(error).__name__)
        raise
    routes.note(name, "answered")


@routes.at("declare-and-end")
async def end_long_after_the_last_declared_byte(scope: Scope, receive: Receive, send: Send) -> None:
    """As a framework that sends an empty last piece, and has background work."""
    name = option(scope, "name")
    await start(send, (b"content-length", b"8"))
    await more(send, b"declared")
    await routes.wait_bell(name)
    try:
        await end(send)
    except OSError as error:
        routes.note(name, type(error).__name__)
        raise
    routes.note(name, "ended")
