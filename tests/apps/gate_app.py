"""An application with gates, which operators are to see.

Run it: `serve gate_app:app --admin 127.0.0.1:9000`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from kit import Receive, Routes, Scope, Send, answer, option

from bridgehead.admission import Gate, NotAdmitted

app = Routes()
gates = {"pool": Gate(1, queue=1, name="pool")}


@app.at("inside")
async def be_inside(scope: Scope, receive: Receive, send: Send) -> None:
    """Until it is rung, or turned away at once."""
    try:
        async with gates["pool"]:
            await app.wait_bell("leave")
    except NotAdmitted:
        await answer(send, status=503)
    else:
        await answer(send)


@app.at("crowd")
async def crowd(scope: Scope, receive: Receive, send: Send) -> None:
    """One comes in, one waits until it is late, one finds that full. Says in which process."""
    gate = gates.setdefault("mail", Gate(1, queue=1, patience=0.01, name="mail"))
    async with gate:
        waits = asyncio.create_task(gate.acquire())
        await asyncio.sleep(0)
        with suppress(NotAdmitted):
            await gate.acquire()
        await asyncio.wait({waits})
        waits.exception()
    await answer(send, str(os.getpid()).encode())


@app.at("make")
async def make(scope: Scope, receive: Receive, send: Send) -> None:
    name = option(scope, "name")
    gates[name] = Gate(int(option(scope, "slots")), name=name)
    await answer(send)


@app.at("drop")
async def drop(scope: Scope, receive: Receive, send: Send) -> None:
    del gates[option(scope, "name")]
    await answer(send)


@app.at("fork")
async def fork(scope: Scope, receive: Receive, send: Send) -> None:
    """A child makes gates, enters and drops them, and its parent's."""
    child = os.fork()
    if child == 0:
        gates["child"] = Gate(7, name="child")
        await gates["child"].acquire()
        await gates["pool"].acquire()
        gates.clear()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    await answer(send)
