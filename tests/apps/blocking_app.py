"""Handlers that hold the event loop, and Python's lock, for the tests of who is held by that."""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has; blocking is the point
from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from kit import Receive, Routes, Scope, Send, option

app = routes = Routes()

START = {"type": "http.response.start", "status": 200, "headers": []}
MOST_SLEEPS = 400  # then nobody came


def block(scope: Scope, number: int = 0) -> None:
    """Hold the loop until somebody has opened the pipe NUMBER below `?gates=` to write, and closed it."""
    Path(option(scope, "gates"), str(number)).read_bytes()


@routes.at("answer-then-block")
async def answer_then_block(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"answered"})
    block(scope)


@routes.at("block-between")
async def block_between_pieces(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    for number in range(3):
        await send({"type": "http.response.body", "body": b"piece %d" % number, "more_body": True})
        block(scope, number)
    await send({"type": "http.response.body"})


def sleep_until(found: Path) -> int:
    """Hold the loop, and not Python's lock, until the client has made this file. How many sleeps it took."""
    for slept in range(1, MOST_SLEEPS + 1):
        time.sleep(0.005)
        if found.exists():
            return slept
    return MOST_SLEEPS


@routes.at("answer-then-sleep")
async def answer_then_sleep(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"answered"})
    found = Path(option(scope, "found"))
    routes.note(found.name, sleep_until(found))


@routes.at("sleep-between")
async def sleep_between_pieces(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    folder = Path(option(scope, "folder"))
    for number in range(int(option(scope, "pieces"))):
        await send({"type": "http.response.body", "body": b"piece %d." % number, "more_body": True})
        routes.note(folder.name, sleep_until(folder / str(number)))
    await send({"type": "http.response.body"})


@routes.at("keep-the-lock")
async def block_in_a_call_that_keeps_pythons_lock(scope: Scope, receive: Receive, send: Send) -> None:
    """As an extension that never lets go of it, until somebody has opened the pipe to write."""
    ctypes.PyDLL(None).open(os.fsencode(Path(option(scope, "gates"), "0")), os.O_RDONLY)
    await send(START)
    await send({"type": "http.response.body", "body": b"%d" % os.getpid()})


@routes.at("block")
async def block_then_answer(scope: Scope, receive: Receive, send: Send) -> None:
    block(scope)
    await send(START)
    await send({"type": "http.response.body", "body": b"at last"})
