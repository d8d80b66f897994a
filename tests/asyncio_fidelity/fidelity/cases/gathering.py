"""`gather`, `wait`, `wait_for`, `as_completed`, `shield`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from fidelity.account import Seen
from fidelity.registry import case
from fidelity.turns import soon


async def value(of: Any, turns: int = 1) -> Any:
    for _ in range(turns):
        await asyncio.sleep(0)
    return of


async def fail(error: BaseException, turns: int = 1) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    raise error


async def long(seen: Seen) -> None:
    seen("begun")
    await asyncio.sleep(60)


async def tell_the_end(seen: Seen, name: str, awaitable: Awaitable[Any]) -> None:
    try:
        seen(name, "returned", await awaitable)
    except BaseException as error:
        seen(name, "raised", error)
        raise


@case()
async def gather_keeps_the_order(seen: Seen) -> None:
    seen(await asyncio.gather(value("slow", 9), value("quick"), value("middle", 4)))


@case()
async def gather_of_nothing(seen: Seen) -> None:
    seen(await asyncio.gather())


@case()
async def gather_of_one_coroutine_twice(seen: Seen) -> None:
    coroutine = value("once")
    seen(await asyncio.gather(coroutine, coroutine))


@case()
async def gather_raises_the_first_failure_and_lets_others_run(seen: Seen) -> None:
    other = asyncio.ensure_future(tell_the_end(seen, "other", value("done", 5)))
    try:
        await asyncio.gather(other, fail(ValueError("first"), 1), fail(KeyError("second"), 2))
    except ValueError as error:
        seen(error, other.done())
    await other


@case()
async def gather_returns_exceptions(seen: Seen) -> None:
    cancelled = asyncio.create_task(asyncio.sleep(60))
    asyncio.get_running_loop().call_soon(cancelled.cancel, "why")
    seen(
        await asyncio.gather(
            value(1), fail(ValueError("no"), 1), cancelled, fail(OSError(2, "two"), 3), return_exceptions=True
        )
    )


@case()
async def gather_is_cancelled_with_its_children(seen: Seen) -> None:
    gathering = asyncio.gather(
        tell_the_end(seen, "a", asyncio.sleep(60)), tell_the_end(seen, "b", asyncio.sleep(60))
    )
    await asyncio.sleep(0)
    seen(gathering.cancel("enough"))
    try:
        await gathering
    except asyncio.CancelledError as error:
        seen(error, gathering.cancelled())


@case()
async def a_cancelled_handler_cancels_what_it_gathers(seen: Seen) -> None:
    task = asyncio.current_task()
    assert task is not None
    soon(task.cancel, "from outside")
    try:
        await asyncio.gather(
            tell_the_end(seen, "a", asyncio.sleep(60)), tell_the_end(seen, "b", asyncio.sleep(60))
        )
    except asyncio.CancelledError as error:
        seen(error, task.cancelling(), task.uncancel())


@case()
async def gather_in_gather(seen: Seen) -> None:
    inner = asyncio.gather(value(1, 3), value(2))
    seen(await asyncio.gather(inner, value(3), asyncio.gather(value(4, 2))))


@case()
async def gather_of_futures_that_are_done(seen: Seen) -> None:
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    done.set_result(1)
    seen(await asyncio.gather(done, done, value(2)))


@case()
async def a_child_of_gather_is_cancelled(seen: Seen) -> None:
    child = asyncio.create_task(asyncio.sleep(60))
    asyncio.get_running_loop().call_soon(child.cancel, "only this")
    try:
        await asyncio.gather(child, value(1))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        assert task is not None
        seen(error, task.cancelling())


@case()
async def wait_for_all(seen: Seen) -> None:
    tasks = [asyncio.create_task(value(number, number)) for number in range(4)]
    done, pending = await asyncio.wait(tasks)
    seen(sorted(task.result() for task in done), len(pending))


@case()
async def wait_for_the_first(seen: Seen) -> None:
    tasks = [asyncio.create_task(value(number, 1 + 8 * number)) for number in range(3)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    seen(sorted(task.result() for task in done), len(pending))
    await asyncio.gather(*pending)


@case()
async def wait_for_the_first_exception(seen: Seen) -> None:
    tasks = [
        asyncio.create_task(value("early", 1)),
        asyncio.create_task(fail(ValueError("failed"), 4)),
        asyncio.create_task(value("late", 30)),
    ]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    seen(len(done), len(pending), tasks[1].exception())
    await asyncio.wait(pending)


@case()
async def wait_times_out_and_cancels_nothing(seen: Seen) -> None:
    task = asyncio.create_task(asyncio.sleep(60))
    done, pending = await asyncio.wait([task], timeout=0.01)
    seen(len(done), len(pending), task.done())
    task.cancel()


@case()
async def wait_refuses(seen: Seen) -> None:
    coroutine = value(1)
    refused: tuple[Any, ...] = ([], [coroutine], coroutine)
    for what in refused:
        try:
            await asyncio.wait(what)
        except (TypeError, ValueError) as error:
            seen(error)
    coroutine.close()


@case()
async def wait_for_gives_the_result(seen: Seen) -> None:
    seen(await asyncio.wait_for(value("in time", 3), 30))
    seen(await asyncio.wait_for(value("without a time"), None))


@case()
async def wait_for_times_out(seen: Seen) -> None:
    try:
        await asyncio.wait_for(tell_the_end(seen, "inner", asyncio.sleep(60)), 0.01)
    except TimeoutError as error:
        seen(error)


@case()
async def wait_for_with_no_time_at_all(seen: Seen) -> None:
    for seconds in (0, -1):
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        done.set_result("done already")
        seen(await asyncio.wait_for(done, seconds))
        try:
            await asyncio.wait_for(long(seen), seconds)
        except TimeoutError as error:
            seen(error)


@case()
async def wait_for_is_cancelled_from_outside(seen: Seen) -> None:
    async def wait() -> None:
        await asyncio.wait_for(tell_the_end(seen, "inner", asyncio.sleep(60)), 60)

    child = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    child.cancel("outside")
    await asyncio.wait([child])
    seen(child.cancelled())


@case()
async def wait_for_whose_inner_one_swallows_the_cancellation(seen: Seen) -> None:
    async def swallow() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "swallowed"
        return "not reached"

    try:
        seen(await asyncio.wait_for(swallow(), 0.01))
    except TimeoutError as error:
        seen(error)


@case()
async def wait_for_whose_inner_one_fails_when_cancelled(seen: Seen) -> None:
    async def fail_then() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("while cancelled")

    try:
        await asyncio.wait_for(fail_then(), 0.01)
    except Exception as error:
        seen(error)


@case()
async def as_completed_gives_the_quick_ones_first(seen: Seen) -> None:
    for earliest in asyncio.as_completed([value("slow", 20), value("quick", 1), value("middle", 9)]):
        seen(await earliest)


@case(alone=True)
async def as_completed_times_out(seen: Seen) -> None:
    slow = asyncio.create_task(asyncio.sleep(60))
    for earliest in asyncio.as_completed([value("quick"), slow], timeout=0.02):
        try:
            seen(await earliest)
        except TimeoutError as error:
            seen(type(error), str(error))
    slow.cancel()


@case()
async def as_completed_raises_at_its_place(seen: Seen) -> None:
    for earliest in asyncio.as_completed([fail(ValueError("no"), 3), value("yes", 1), value("too", 9)]):
        try:
            seen(await earliest)
        except ValueError as error:
            seen(type(error), str(error))


@case(since=(3, 13))
async def as_completed_as_an_asynchronous_iterator(seen: Seen) -> None:
    tasks = {asyncio.create_task(value(name, turns)): name for name, turns in (("slow", 20), ("quick", 1))}
    async for task in asyncio.as_completed(tasks):  # type: ignore[attr-defined, unused-ignore]
        seen(tasks[task], await task)


@case()
async def shield_keeps_the_inner_one_alive(seen: Seen) -> None:
    inner = asyncio.create_task(tell_the_end(seen, "inner", value("done", 5)))

    async def wait() -> None:
        await asyncio.shield(inner)

    outer = asyncio.create_task(wait())
    await asyncio.sleep(0)
    outer.cancel("outer")
    await asyncio.wait([outer])
    seen(outer.cancelled(), inner.cancelled(), inner.done())
    await inner


@case()
async def the_handler_is_cancelled_in_a_shield(seen: Seen) -> None:
    task = asyncio.current_task()
    assert task is not None
    inner = asyncio.create_task(value("survived", 20))
    asyncio.get_running_loop().call_soon(task.cancel, "handler")
    try:
        await asyncio.shield(inner)
    except asyncio.CancelledError as error:
        seen(error, inner.done(), task.uncancel())
    seen(await inner)


@case()
async def a_shielded_one_that_is_cancelled_itself(seen: Seen) -> None:
    inner = asyncio.create_task(asyncio.sleep(60))
    asyncio.get_running_loop().call_soon(inner.cancel, "inner")
    try:
        await asyncio.shield(inner)
    except asyncio.CancelledError as error:
        seen(error)


@case()
async def shields_of_what_is_done(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()
    done.set_result("result")
    failed: asyncio.Future[str] = loop.create_future()
    failed.set_exception(ValueError("failed"))
    seen(await asyncio.shield(done), asyncio.shield(done) is done)
    try:
        await asyncio.shield(failed)
    except ValueError as error:
        seen(error)


@case(alone=True)
async def an_exception_behind_a_cancelled_shield_is_reported(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: seen(context["message"], context.get("exception")))
    inner = asyncio.create_task(fail(ValueError("unseen"), 5))

    async def wait() -> None:
        await asyncio.shield(inner)

    outer = asyncio.create_task(wait())
    await asyncio.sleep(0)
    outer.cancel()
    await asyncio.wait([outer, inner])
    await asyncio.sleep(0)
    loop.set_exception_handler(None)
    seen(inner.exception())
