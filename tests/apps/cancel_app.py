"""A handler that waits in random ways until it is cancelled, and what is left of a thousand of them.

Run by itself: `serve cancel_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from kit import Receive, Routes, Scope, Send, answer, answer_json, end, more, option, read_body, start

routes = app = Routes()
# What a request is made of, and what it makes; the other types are the bridge's.
PARTS = ("coroutine", "Task", "Future", "Context", "async_generator", "frame", "traceback", "CancelledError")
came_to: Counter[str] = Counter()
cancelling: set[threading.Event] = set()


class Waiting:
    """One request, and the ways in which it waits."""

    def __init__(self, receive: Receive, send: Send, chance: random.Random) -> None:
        self.receive, self.send, self.chance = receive, send, chance
        self.loop = asyncio.get_running_loop()
        self.streams = chance.random() < 0.5

    async def somehow(self, depth: int = 3) -> object:
        ways = NESTED if depth and self.chance.random() < 0.5 else PLAIN
        return await self.chance.choice(ways)(self, depth - 1)

    def a_moment(self) -> float:
        return self.chance.choice((0, 0, 0.0005, 0.002))

    async def sleep(self, _: int) -> None:
        await asyncio.sleep(self.a_moment())

    async def wait_for_a_message(self, _: int) -> None:
        await self.receive()

    async def wait_for_a_future(self, _: int) -> None:
        future = self.loop.create_future()
        self.loop.call_later(self.a_moment(), _resolve, future)
        await future

    async def wait_for_ever(self, _: int) -> None:
        await self.loop.create_future()

    async def wait_for_an_event(self, _: int) -> None:
        await asyncio.Event().wait()

    async def wait_for_a_lock(self, _: int) -> None:
        lock = asyncio.Lock()
        async with lock:
            with suppress(TimeoutError):
                await asyncio.wait_for(lock.acquire(), 0.002)

    async def wait_for_a_queue(self, _: int) -> None:
        await asyncio.Queue[None]().get()

    async def wait_in_a_thread(self, _: int) -> None:
        await asyncio.to_thread(time.sleep, 0.001)

    async def send_a_piece(self, _: int) -> None:
        if self.streams:
            await more(self.send, b"." * self.chance.choice((1, 100_000)))
        else:
            await asyncio.sleep(0)

    async def wait_in_anyio(self, _: int) -> None:
        with anyio.move_on_after(self.a_moment()):
            await anyio.sleep(1)

    async def wait_in_a_group_of_anyios(self, depth: int) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(self.somehow, 0)
            await self.somehow(depth)
            group.cancel_scope.cancel()

    async def wait_for_a_task(self, _: int) -> None:
        await asyncio.create_task(self.somehow(0))

    async def wait_for_a_message_in_a_task(self, _: int) -> None:
        task = asyncio.ensure_future(self.receive())
        try:
            await asyncio.wait({task}, timeout=self.a_moment())
        finally:
            task.cancel()

    async def wait_in_a_group(self, depth: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(self.somehow(0))
            await self.somehow(depth)

    async def wait_with_a_timeout(self, depth: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.002):
                await self.somehow(depth)

    async def wait_for_several(self, _: int) -> None:
        await asyncio.gather(*(self.somehow(0) for _ in range(3)))

    async def wait_behind_a_shield(self, _: int) -> None:
        await asyncio.shield(asyncio.create_task(self.sleep(0)))

    async def wait_in_a_generator(self, depth: int) -> None:
        async for _ in self.items(depth):
            if self.chance.random() < 0.3:
                return

    async def items(self, depth: int) -> AsyncGenerator[int, None]:
        for number in range(3):
            await self.somehow(depth)
            yield number


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


Way = Callable[[Waiting, int], Awaitable[object]]
PLAIN: list[Way] = [
    Waiting.sleep,
    Waiting.wait_for_a_message,
    Waiting.wait_for_a_future,
    Waiting.wait_for_ever,
    Waiting.wait_for_an_event,
    Waiting.wait_for_a_lock,
    Waiting.wait_for_a_queue,
    Waiting.wait_in_a_thread,
    Waiting.send_a_piece,
    Waiting.wait_in_anyio,
]
NESTED: list[Way] = [
    Waiting.wait_in_a_group_of_anyios,
    Waiting.wait_for_a_task,
    Waiting.wait_for_a_message_in_a_task,
    Waiting.wait_in_a_group,
    Waiting.wait_with_a_timeout,
    Waiting.wait_for_several,
    Waiting.wait_behind_a_shield,
    Waiting.wait_in_a_generator,
]


@routes.at("cancelled")
async def wait_until_cancelled(scope: Scope, receive: Receive, send: Send) -> None:
    chance = random.Random(option(scope, "seed"))
    task = asyncio.current_task()
    assert task is not None
    await read_body(receive)
    came_to["begun"] += 1
    waiting = Waiting(receive, send, chance)
    swallows = chance.random() < 0.5
    if waiting.streams:
        await start(send)
    over = _have_it_cancelled(task, chance)
    try:
        try:
            while True:
                await waiting.somehow()
        finally:
            over.set()
    except asyncio.CancelledError:
        came_to["cancelled"] += 1
        if not swallows:
            raise
        while task.cancelling():
            task.uncancel()
        if waiting.streams:
            await end(send)
        else:
            await answer(send, b"swallowed")
    except BaseException as error:
        came_to[f"{type(error).__name__}: {error}"] += 1
        raise


def _have_it_cancelled(task: asyncio.Task[Any], chance: random.Random) -> threading.Event:
    """After some turns of the loop or milliseconds, by the loop or by another thread.

    And again until it is over: a timeout that ends at the same time may take a cancellation for its own.
    """
    loop = task.get_loop()
    turns, milliseconds = chance.randrange(12), chance.random() * 10
    by = chance.choice(("turns", "time", "thread"))
    over = threading.Event()
    cancelling.add(over)

    def cancel() -> None:
        if over.is_set():
            cancelling.discard(over)
        else:
            task.cancel()
            loop.call_later(0.01, cancel)

    def after(left: int) -> None:
        loop.call_soon(after, left - 1) if left else cancel()

    def in_a_thread() -> None:
        time.sleep(milliseconds / 1000)
        loop.call_soon_threadsafe(cancel)

    if by == "turns":
        after(turns)
    elif by == "time":
        loop.call_later(milliseconds / 1000, cancel)
    else:
        threading.Thread(target=in_a_thread).start()
    return over


@routes.at("came-to")
async def show_what_they_came_to(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, came_to)


@routes.at("left")
async def show_what_is_left(scope: Scope, receive: Receive, send: Send) -> None:
    """How many objects there are of what requests are made of. Instances hold their type, tracked or not."""
    # What was shielded, or runs in a thread, is over by then, and nobody is still to be cancelled again.
    async with asyncio.timeout(10):
        while cancelling or len(asyncio.all_tasks()) > int(option(scope, "tasks")):
            await asyncio.sleep(0.01)
    for _ in range(3):
        await asyncio.sleep(0)
        gc.collect()
    objects = gc.get_objects()
    kinds = Counter(type(each).__name__ for each in objects)
    left = {name: kinds[name] for name in PARTS}
    for each in objects:
        if isinstance(each, type) and each.__module__ == "bridgehead._native":
            left[each.__name__] = sys.getrefcount(each)
    del objects
    left["tasks"] = len(asyncio.all_tasks())
    await answer_json(send, left)
