"""What applications do to the loop that they run on.

Run it: `serve own_loop_app:app --loop asyncio`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
# mypy: disable-error-code="attr-defined"
from __future__ import annotations

import asyncio
import heapq
import os
from contextvars import ContextVar
from typing import Any

from kit import Receive, Routes, Scope, Send, answer, answer_json, option, read_body

routes = Routes()
done: set[str] = set()
counted: list[object] = []
named: ContextVar[str] = ContextVar("named")
started: ContextVar[str] = ContextVar("started")


def say(line: str) -> None:
    os.write(2, f"app: {line}\n".encode())


def turn_within(loop: asyncio.AbstractEventLoop) -> None:
    """A turn of asyncio's loop in a callback of its own, as nest_asyncio has it; cancelled timers go."""
    while loop._scheduled and loop._scheduled[0]._cancelled:
        heapq.heappop(loop._scheduled)._scheduled = False
    events = loop._selector.select(0 if loop._ready else None)
    loop._process_events(events)
    for _ in range(len(loop._ready)):
        if not loop._ready:
            break
        handle = loop._ready.popleft()
        current = asyncio.current_task(loop)
        if current is not None:
            asyncio.tasks._leave_task(loop, current)
        try:
            if not handle._cancelled:
                handle._run()
        finally:
            if current is not None:
                asyncio.tasks._enter_task(loop, current)


@routes.at("within")
async def turn_the_loop_until_others_are_done(scope: Scope, receive: Receive, send: Send) -> None:
    if option(scope, "from") == "a-callback":
        await asyncio.sleep(0)
    if option(scope, "from") == "a-step-of-the-drains":
        say("waits for its body")
        await read_body(receive)
    say("turns the loop")
    while not done.issuperset(option(scope, "until").split(",")):
        turn_within(asyncio.get_running_loop())
    await answer(send, b"turned")


@routes.at("take-a-timer")
async def turn_the_loop_and_sleep(scope: Scope, receive: Receive, send: Send) -> None:
    """In the step in which its body comes: a timer goes, and another comes in its place."""
    loop = asyncio.get_running_loop()
    far = loop.call_later(3600, int)
    say("waits")
    await read_body(receive)
    far.cancel()
    loop.call_soon(int)
    turn_within(loop)
    await asyncio.sleep(0.05)
    await answer(send, b"slept")


@routes.at("read")
async def read_and_be_done(scope: Scope, receive: Receive, send: Send) -> None:
    say("reads")
    body = await read_body(receive)
    await answer(send, body)
    done.add(option(scope, "name"))


@routes.at("step")
async def step_and_be_done(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(0)
    await answer(send, b"stepped")
    done.add(option(scope, "name"))


@routes.at("fork-and-poll")
async def poll_the_loop_in_a_forked_child(scope: Scope, receive: Receive, send: Send) -> None:
    """As nest_asyncio's `asyncio.run` does there: the loop is the one that is inherited."""
    selector = asyncio.get_running_loop()._selector
    if (child := os.fork()) == 0:
        # What is found is the parent's as well, and left to it.
        selector.select(0.01)
        # The network's threads are the parent's alone: who asked that for events might wait for one of them.
        os._exit(getattr(selector, "_serve", None) is not None)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    await answer_json(send, os.waitstatus_to_exitcode(status))


class MarkedTask(asyncio.Task[Any]):
    """As an application's own factory makes them."""


def make_marked(loop: asyncio.AbstractEventLoop, coroutine: Any, **keywords: Any) -> MarkedTask:
    # Some know nothing but these two.
    return (
        MarkedTask(coroutine, loop=loop, **keywords)
        if "KNOWS" in os.environ
        else MarkedTask(coroutine, loop=loop)
    )


@routes.at("marked")
async def show_the_task(scope: Scope, receive: Receive, send: Send) -> None:
    named.set(option(scope, "name"))
    await read_body(receive)
    await asyncio.sleep(0)
    task = asyncio.current_task()
    await answer_json(send, [isinstance(task, MarkedTask), named.get(), started.get("")])


def count_callbacks(loop: asyncio.AbstractEventLoop) -> None:
    """Sets a `call_soon` on the loop, as who measures it may."""
    usual = loop.call_soon

    def call_soon(callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        counted.append(callback)
        return usual(callback, *args, context=context)

    vars(loop)["call_soon"] = call_soon


@routes.at("counted")
async def show_whether_callbacks_are_counted(scope: Scope, receive: Receive, send: Send) -> None:
    loop = asyncio.get_running_loop()
    seen = ["call_soon" in vars(loop)]
    for callback in (int, str):
        loop.call_soon(callback)
        seen.append(counted[-1:] == [callback])
        await asyncio.sleep(0)
    await answer_json(send, seen)


@routes.at("uncounted")
async def count_no_more(scope: Scope, receive: Receive, send: Send) -> None:
    del asyncio.get_running_loop().call_soon
    counted.clear()
    await answer_json(send, None)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan" and "FACTORY" in os.environ:
        started.set("in the lifespan")
        asyncio.get_running_loop().set_task_factory(make_marked)
    if scope["type"] == "lifespan" and "COUNTS" in os.environ:
        count_callbacks(asyncio.get_running_loop())
    await routes(scope, receive, send)
