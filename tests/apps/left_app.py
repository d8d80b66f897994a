"""An application that leaves tasks running: those that end when told, and those that do not.

Run it: `serve left_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

from kit import Receive, Routes, Scope, Send, answer, option

app = Routes()
left: list[asyncio.Task[Any]] = []
opened: list[AsyncIterator[None]] = []


def say(line: str) -> None:
    os.write(2, f"app: {line}\n".encode())


async def refuse(after: float = 60.0) -> None:
    while True:
        try:
            await asyncio.sleep(after)
        except asyncio.CancelledError:
            say("refused")


async def refuse_elsewhere() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            say("refused elsewhere")


async def clean_up_in_a_task() -> None:
    """What it begins as it ends has to end as well."""
    try:
        await asyncio.sleep(60)
    finally:
        left.append(asyncio.create_task(flush()))


async def flush() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        say("flushed")


async def fail() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        raise RuntimeError("failed at the end")


async def leave_the_process() -> None:
    """As a worker's loop may end that is told so."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise SystemExit(3) from None


async def interrupt() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        raise KeyboardInterrupt


async def clean_up_in_turns() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        for _ in range(10):
            await asyncio.sleep(0)
        say("cleaned up")


async def block() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        say("blocks")
        sleep_in_python(600)


async def take_three_seconds() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        sleep_in_python(3)
        say("took three seconds")


async def keep_the_lock() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        say("blocks")
        ctypes.PyDLL(None).usleep(600_000_000)


async def breed() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        # One that is cancelled before it has begun breeds nothing.
        while True:
            left.append(asyncio.create_task(breed(), name="another"))
            await asyncio.sleep(0)
            if not left[-1].done():
                break


async def hang_at_the_end() -> AsyncIterator[None]:
    try:
        yield
    finally:
        await asyncio.sleep(600)


async def refuse_at_the_end() -> AsyncIterator[None]:
    try:
        yield
    finally:
        await refuse()


async def begin_at_the_end() -> AsyncIterator[None]:
    try:
        yield
    finally:
        left.append(asyncio.create_task(flush()))
        await asyncio.sleep(0)


async def leave_at_the_end() -> AsyncIterator[None]:
    try:
        yield
    finally:
        raise SystemExit(4)


async def open_generator(generator: Callable[[], AsyncIterator[None]]) -> None:
    opened.append(generator())
    await anext(opened[-1])


def sleep_in_python(seconds: float) -> None:
    time.sleep(seconds)


KINDS: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
    "refuse": refuse,
    "refuse_elsewhere": refuse_elsewhere,
    "clean_up": clean_up_in_a_task,
    "flush": flush,
    "fail": fail,
    "leave_the_process": leave_the_process,
    "interrupt": interrupt,
    "clean_up_in_turns": clean_up_in_turns,
    "block": block,
    "take_three_seconds": take_three_seconds,
    "keep_the_lock": keep_the_lock,
    "breed": breed,
    "hang_at_the_end": partial(open_generator, hang_at_the_end),
    "refuse_at_the_end": partial(open_generator, refuse_at_the_end),
    "begin_at_the_end": partial(open_generator, begin_at_the_end),
    "leave_at_the_end": partial(open_generator, leave_at_the_end),
}


@app.at("leave")
async def leave(scope: Scope, receive: Receive, send: Send) -> None:
    kind = option(scope, "kind")
    name = option(scope, "name", kind)
    for number in range(int(option(scope, "count", "1"))):
        left.append(asyncio.create_task(KINDS[kind](), name=f"{name} {number}"))
    await asyncio.sleep(0)
    await answer(send)


@app.at("linger")
async def leave_what_holds_the_interpreter(scope: Scope, receive: Receive, send: Send) -> None:
    atexit.register(time.sleep, 600)
    await answer(send)


@app.at("thread")
async def leave_a_thread(scope: Scope, receive: Receive, send: Send) -> None:
    asyncio.get_running_loop().run_in_executor(None, sleep_in_python, 600)
    await answer(send)


@app.at("refuse")
async def refuse_to_end(scope: Scope, receive: Receive, send: Send) -> None:
    say("began")
    await refuse()
