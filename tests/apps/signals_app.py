"""Applications that set handlers of their own for SIGTERM and SIGINT while they are served.

Run one of them: `serve signals_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import os
import signal
from signal import Signals
from signal import signal as set_handler
from typing import Any

from kit import App, Receive, Routes, Scope, Send, answer, option
from lifecycle_app import say, talking_lifespan

routes = Routes()
got: list[int] = []


def note(number: int, frame: object = None) -> None:
    got.append(number)
    say(f"own handler got {Signals(number).name}")


def set_on_module(number: int) -> None:
    signal.signal(number, note)


def set_by_an_imported_name(number: int) -> None:
    set_handler(number, note)


def set_on_loop(number: int) -> None:
    asyncio.get_running_loop().add_signal_handler(number, note, number)


def set_and_remove(number: int) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, note, number)
    loop.remove_signal_handler(number)
    say(f"own handler got {Signals(number).name}, it would have")


def set_and_ignore(number: int) -> None:
    signal.signal(number, signal.SIG_IGN)
    say(f"own handler got {Signals(number).name}, it would have")


WAYS = {
    "module": set_on_module,
    "imported": set_by_an_imported_name,
    "loop": set_on_loop,
    "removed": set_and_remove,
    "ignored": set_and_ignore,
}


def take(way: str, number: int) -> None:
    """Not a moment between the handler and the signal."""
    WAYS[way](number)
    os.kill(os.getpid(), number)


@routes.at("take")
async def take_in_a_request(scope: Scope, receive: Receive, send: Send) -> None:
    take(option(scope, "way"), int(option(scope, "number")))
    await answer(send, b"taken")


@routes.at("task")
async def take_in_a_task(scope: Scope, receive: Receive, send: Send) -> None:
    async def work() -> None:
        take(option(scope, "way"), int(option(scope, "number")))

    await answer(send, b"taken")
    tasks.append(asyncio.create_task(work()))


tasks: list[asyncio.Task[None]] = []


@routes.at("again")
async def set_it_again_and_again(scope: Scope, receive: Receive, send: Send) -> None:
    """Until the signal has come, wherever in this it does. A thread may take it, too."""
    number = int(option(scope, "number"))
    set_on_module(number)
    await asyncio.to_thread(say, "again began")
    while not got:
        set_on_module(number)
    await answer(send, b"got it")


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await talking_lifespan(receive, send)
    else:
        await routes(scope, receive, send)


def takes_at_startup(way: str, number: int) -> App:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            take(way, number)
            await asyncio.sleep(600)

    return application


def __getattr__(name: str) -> Any:
    """`at_startup_loop_15` is an application that takes signal 15 on the loop."""
    kind, _, rest = name.partition("startup_")
    if kind != "at_":
        raise AttributeError(name)
    way, _, number = rest.partition("_")
    return takes_at_startup(way, int(number))
