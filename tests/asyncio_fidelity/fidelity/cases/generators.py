"""Asynchronous generators and context managers, and who closes them."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

from fidelity.account import Seen
from fidelity.registry import case


def task() -> asyncio.Task[object]:
    current = asyncio.current_task()
    assert current is not None
    return current


async def count(seen: Seen, to: int = 5) -> AsyncGenerator[int, str | None]:
    try:
        for number in range(to):
            await asyncio.sleep(0)
            told = yield number
            if told is not None:
                seen("told", told)
    except BaseException as error:
        seen("generator", type(error))
        raise
    finally:
        seen("closing", asyncio.current_task() is not None)
        await asyncio.sleep(0)
        seen("closed")


@case()
async def a_generator_runs_to_its_end(seen: Seen) -> None:
    seen([number async for number in count(seen)])


@case()
async def a_generator_is_left_and_closed(seen: Seen) -> None:
    async with aclosing(count(seen)) as numbers:
        async for number in numbers:
            if number == 2:
                break
    seen("left")


@case()
async def a_generator_is_left_to_the_garbage_collector(seen: Seen) -> None:
    """The loop's hook closes it in a task of its own."""
    closed = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            seen("closed in a task of its own", asyncio.current_task() is not outer)
            closed.set()

    outer = task()
    async for _ in numbers():
        break
    gc.collect()
    await asyncio.wait_for(closed.wait(), 10)


@case()
async def a_generator_in_a_cycle_is_left_to_the_garbage_collector(seen: Seen) -> None:
    closed = asyncio.Event()

    async def numbers(knot: list[object]) -> AsyncIterator[int]:
        try:
            yield len(knot)
        finally:
            await asyncio.sleep(0)
            closed.set()

    async def drop() -> None:
        knot: list[object] = []
        generator = numbers(knot)
        knot.append(generator)
        seen(await anext(generator))

    await drop()
    gc.collect()
    await asyncio.wait_for(closed.wait(), 10)
    seen(closed.is_set())


@case()
async def the_hooks_are_the_loops(seen: Seen) -> None:
    hooks = sys.get_asyncgen_hooks()
    seen(hooks.firstiter is not None, hooks.finalizer is not None)
    await asyncio.sleep(0)
    seen(sys.get_asyncgen_hooks() == hooks, sys.get_coroutine_origin_tracking_depth())


@case()
async def asend_athrow_aclose(seen: Seen) -> None:
    numbers = count(seen)
    seen(await anext(numbers), await numbers.asend("a word"))
    try:
        await numbers.athrow(ValueError("thrown"))
    except ValueError as error:
        seen(error.args)
    await numbers.aclose()
    try:
        await anext(numbers)
    except StopAsyncIteration as error:
        seen(error)


@case()
async def a_generator_that_is_running_already(seen: Seen) -> None:
    numbers = count(seen)
    first = asyncio.ensure_future(anext(numbers))
    await asyncio.sleep(0)
    try:
        await anext(numbers)
    except RuntimeError as error:
        seen(error.args)
    seen(await first)
    await numbers.aclose()


@case()
async def a_generator_that_yields_when_closed(seen: Seen) -> None:
    async def stubborn() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            yield 2

    numbers = stubborn()
    await anext(numbers)
    try:
        await numbers.aclose()
    except RuntimeError as error:
        seen(error.args)


@case()
async def a_generator_is_shared_by_tasks(seen: Seen) -> None:
    numbers = count(seen, 4)

    async def take(name: str) -> None:
        seen(name, await anext(numbers))

    for name in "abcd":
        await asyncio.create_task(take(name))
    await numbers.aclose()


@case()
async def a_stop_iteration_in_a_generator(seen: Seen) -> None:
    async def stop() -> AsyncIterator[int]:
        yield 1
        raise StopAsyncIteration("no")

    async def stop_too() -> AsyncIterator[int]:
        yield 1
        raise StopIteration("no")

    for generator in (stop(), stop_too()):
        try:
            async for _ in generator:
                pass
        except RuntimeError as error:
            seen(error)


@case()
async def context_managers(seen: Seen) -> None:
    @asynccontextmanager
    async def manage(name: str) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        try:
            yield name
        except ValueError as error:
            seen(name, error)
        finally:
            await asyncio.sleep(0)
            seen("left", name)

    async with manage("outer") as outer, manage("inner") as inner:
        seen(outer, inner)
        raise ValueError("inside")
    async with AsyncExitStack() as stack:
        for name in "abc":
            await stack.enter_async_context(manage(name))
        stack.push_async_callback(asyncio.sleep, 0)


@case()
async def comprehensions(seen: Seen) -> None:
    seen([number async for number in count(seen, 3) if number % 2 == 0])
    seen({number: await asyncio.sleep(0, number * 2) for number in range(3)})
    seen(tuple([number async for number in count(seen, 2)]), await anext(aiter(count(seen, 0)), "nothing"))
