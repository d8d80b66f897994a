"""An application that holds its loop in several ways, and says what `bridgehead.diagnostics` has of it.

Run it: `serve health_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import time

from kit import Receive, Routes, Scope, Send, answer, answer_json, option

from bridgehead.admission import Gate
from bridgehead.diagnostics import snapshot

app = Routes()
gate = Gate(3, name="pool")


def sleep_in_python(seconds: float) -> None:
    time.sleep(seconds)


def sleep_with_the_lock(seconds: float) -> None:
    """A call of C's that keeps Python's lock."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


HOLDS = {"python": sleep_in_python, "lock": sleep_with_the_lock}


@app.at("hold")
async def hold(scope: Scope, receive: Receive, send: Send) -> None:
    """Hold the loop for `?seconds=`: in the first step, or resumed by asyncio with `?later=`."""
    if option(scope, "later"):
        await asyncio.sleep(float(option(scope, "later")))
    HOLDS[option(scope, "how", "python")](float(option(scope, "seconds")))
    await answer(send, b"held")


@app.at("snapshot")
async def show(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, dataclasses.asdict(snapshot()))


@app.at("until-queued")
async def show_those_who_wait(scope: Scope, receive: Receive, send: Send) -> None:
    while (shown := snapshot()).queued < int(option(scope, "count")):
        await asyncio.sleep(0.001)
    await answer_json(send, dataclasses.asdict(shown))


@app.at("thread")
async def work_in_a_thread(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.to_thread(int)
    await answer(send, b"worked")


@app.at("park")
async def park(scope: Scope, receive: Receive, send: Send) -> None:
    app.note("parked", True)
    await app.wait_bell(option(scope, "until"))
    await answer(send, b"rung")


@app.at("forget")
async def forget_to_await(scope: Scope, receive: Receive, send: Send) -> None:
    async def nobody_waits() -> None:
        pass

    nobody_waits()  # type: ignore[unused-coroutine]
    await answer(send)
