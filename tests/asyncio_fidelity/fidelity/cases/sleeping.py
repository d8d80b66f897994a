"""Sleeping, and whose turn it is."""

from __future__ import annotations

import asyncio
from typing import Any

from fidelity.account import Seen
from fidelity.registry import case


async def tick(seen: Seen, name: str, count: int) -> None:
    for number in range(count):
        seen(name, number)
        await asyncio.sleep(0)


@case()
async def sleep_gives_its_result(seen: Seen) -> None:
    seen(await asyncio.sleep(0.001, "result"), await asyncio.sleep(0, "at once"))
    seen(await asyncio.sleep(-1, "negative"))


@case()
async def sleep_zero_takes_turns_with_a_child(seen: Seen) -> None:
    child = asyncio.create_task(tick(seen, "child", 5))
    await tick(seen, "handler", 5)
    await child


@case()
async def sleep_zero_takes_turns_with_ten_children(seen: Seen) -> None:
    children = [asyncio.create_task(tick(seen, f"child {number}", 3)) for number in range(10)]
    await tick(seen, "handler", 3)
    await asyncio.gather(*children)


@case()
async def many_sleeps_of_zero_stay_in_step_with_a_child(seen: Seen) -> None:
    """More than any budget of steps."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    child = asyncio.create_task(count())
    for number in range(400):
        await asyncio.sleep(0)
        if number % 50 == 0:
            seen(number, turns)
    child.cancel()


@case()
async def call_soon_comes_before_the_next_step(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    loop.call_soon(seen, "first")
    await asyncio.sleep(0)
    seen("step")
    loop.call_soon(seen, "second")
    loop.call_soon(seen, "third")
    await asyncio.sleep(0)
    seen("step")


@case()
async def a_callback_scheduled_by_a_callback_comes_a_turn_later(seen: Seen) -> None:
    loop = asyncio.get_running_loop()

    def outer() -> None:
        seen("outer")
        loop.call_soon(seen, "inner")

    loop.call_soon(outer)
    for turn in range(3):
        await asyncio.sleep(0)
        seen("turn", turn)


@case()
async def a_child_starts_after_the_handler_pauses(seen: Seen) -> None:
    child = asyncio.create_task(tick(seen, "child", 1))
    seen("created", child.done())
    await asyncio.sleep(0)
    seen("paused once", child.done())
    await asyncio.sleep(0)
    seen("paused twice", child.done())


@case()
async def timers_fire_in_their_order(seen: Seen) -> None:
    async def wait(seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen(seconds)

    await asyncio.gather(wait(0.09), wait(0.03), wait(0.06), wait(0.0))


@case()
async def a_sleep_is_cancelled(seen: Seen) -> None:
    async def sleep() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            seen("woken")

    child = asyncio.create_task(sleep())
    await asyncio.sleep(0)
    seen(child.cancel())
    await asyncio.wait([child])
    seen(child.cancelled(), child.cancel())


@case()
async def a_woken_child_waits_for_its_turn(seen: Seen) -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def wait(name: str) -> None:
        seen(name, await future)

    children = [asyncio.create_task(wait(name)) for name in "abc"]
    await asyncio.sleep(0)
    future.set_result("set")
    seen("nobody yet")
    await asyncio.gather(*children)


@case()
async def the_handler_and_a_child_wait_for_one_future(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str] = loop.create_future()

    async def wait() -> None:
        seen("child", await future)

    child = asyncio.create_task(wait())
    await asyncio.sleep(0)
    loop.call_soon(future.set_result, "set")
    seen("handler", await future)
    await child


@case()
async def a_child_sets_what_the_handler_waits_for(seen: Seen) -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        future.set_result("set")
        seen("goes on before the handler")
        await asyncio.sleep(0)
        seen("goes on after the handler")

    child = asyncio.create_task(work())
    seen(await future)
    await child


@case()
async def awaiting_what_is_done_does_not_pause(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[int] = loop.create_future()
    done.set_result(1)
    loop.call_soon(seen, "callback")
    total = 0
    for _ in range(500):
        total += await done
    seen(total)
    await asyncio.sleep(0)


@case()
async def a_coroutine_awaited_directly_does_not_pause(seen: Seen) -> None:
    async def nothing(depth: int) -> int:
        return depth if depth == 0 else await nothing(depth - 1)

    asyncio.get_running_loop().call_soon(seen, "callback")
    seen(await nothing(150))
    await asyncio.sleep(0)


@case()
async def handlers_waits_and_childrens_alternate(seen: Seen) -> None:
    """A chain of futures, each set by the one before."""
    loop = asyncio.get_running_loop()
    chain: list[asyncio.Future[int]] = [loop.create_future() for _ in range(6)]

    async def link(number: int) -> None:
        value = await chain[number]
        seen("link", number, value)
        chain[number + 1].set_result(value + 1)

    children = [asyncio.create_task(link(number)) for number in (0, 2, 4)]
    chain[0].set_result(0)
    for number in (1, 3):
        value = await chain[number]
        seen("handler", number, value)
        chain[number + 1].set_result(value + 1)
    seen("handler", 5, await chain[5])
    await asyncio.gather(*children)


@case()
async def time_goes_forward(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    await asyncio.sleep(0.02)
    seen(loop.time() - before >= 0.015)


@case()
async def call_later_and_call_at(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.call_later(0.03, seen, "late")
    loop.call_at(loop.time() + 0.05, over.set)
    cancelled = loop.call_later(0.001, seen, "never")
    cancelled.cancel()
    seen(cancelled.cancelled())
    await over.wait()
    seen("over")


@case()
async def call_later_at_once(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for seconds in (0, -1):
        loop.call_later(seconds, seen, "called", seconds)
        loop.call_later(seconds, over.set)
        await over.wait()
        over.clear()


@case()
async def a_callback_gets_its_arguments_and_no_task(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def call(*arguments: Any) -> None:
        seen(*arguments, asyncio.current_task(), asyncio.get_running_loop() is loop)
        over.set()

    loop.call_soon(call, 1, "two", None)
    await over.wait()
