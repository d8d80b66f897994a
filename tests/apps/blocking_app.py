"""Handlers that hold the event loop, for the tests of who is held by that."""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has; blocking is the point
from __future__ import annotations

import time

from kit import Receive, Routes, Scope, Send, option

app = routes = Routes()

START = {"type": "http.response.start", "status": 200, "headers": []}


@routes.at("answer-then-block")
async def answer_then_block(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"answered"})
    time.sleep(float(option(scope, "seconds")))


@routes.at("block-between")
async def block_between_pieces(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    for number in range(3):
        await send({"type": "http.response.body", "body": b"piece %d" % number, "more_body": True})
        routes.note("sent", time.monotonic())
        time.sleep(float(option(scope, "seconds")))
    await send({"type": "http.response.body"})


@routes.at("block")
async def block_then_answer(scope: Scope, receive: Receive, send: Send) -> None:
    routes.note("blocking", True)
    time.sleep(float(option(scope, "seconds")))
    await send(START)
    await send({"type": "http.response.body", "body": b"at last"})
