"""Exceptions of every kind, raised in handlers and in their children."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from fidelity.account import Seen
from fidelity.registry import case


class OursError(Exception):
    """Takes what no other exception takes."""

    def __init__(self, *, key: str) -> None:
        super().__init__()
        self.key = key


class Base(BaseException):
    pass


async def fail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def kinds() -> list[BaseException]:
    return [
        ValueError("value", 1),
        OSError(2, "no such", "file"),
        KeyError("key"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "why"),
        ExceptionGroup("group", [ValueError(1), ExceptionGroup("inner", [TypeError(2)])]),
        BaseExceptionGroup("base group", [Base(1)]),
        Base("base"),
        StopAsyncIteration("stop"),
        asyncio.CancelledError("cancelled"),
        asyncio.InvalidStateError("state"),
        TimeoutError("time"),
        RecursionError("deep"),
        MemoryError(),
        AssertionError(),
    ]


@case()
async def every_kind_is_caught_where_it_is_raised(seen: Seen) -> None:
    for error in [*kinds(), GeneratorExit("exit"), KeyboardInterrupt("key"), SystemExit(3)]:
        try:
            await fail(error)
        except BaseException as caught:
            seen(caught is error, caught)


@case()
async def every_kind_comes_out_of_a_child(seen: Seen) -> None:
    for error in kinds():
        child = asyncio.create_task(fail(error))
        try:
            await child
        except BaseException as caught:
            seen(caught is error, caught)
        seen(child.cancelled(), child.done())


@case()
async def every_kind_comes_out_of_a_future(seen: Seen) -> None:
    for error in kinds():
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, error)
        try:
            await future
        except BaseException as caught:
            seen(caught is error, caught)


@case()
async def a_class_set_as_an_exception(seen: Seen) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_exception, ValueError)
    try:
        await future
    except ValueError as error:
        seen(error)


@case()
async def futures_refuse_a_stop_iteration(seen: Seen) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    try:
        future.set_exception(StopIteration("no"))
    except TypeError as error:
        seen(error)
    seen(future.done(), future.cancel())


@case()
async def a_stop_iteration_in_a_coroutine(seen: Seen) -> None:
    for attempt in (fail(StopIteration("no")), asyncio.create_task(fail(StopIteration("no")))):
        try:
            await attempt
        except RuntimeError as error:
            seen(error)


@case()
async def an_exception_leaves_the_case(seen: Seen) -> None:
    seen("raises")
    await fail(ValueError("left"))


@case()
async def an_exception_leaves_the_case_at_once(_: Seen) -> None:
    raise OursError(key="at once")


@case()
async def a_group_leaves_the_case(_: Seen) -> None:
    raise ExceptionGroup("left", [ValueError(1), KeyError(2)])


@case()
async def a_base_exception_leaves_the_case(_: Seen) -> None:
    await fail(Base("left"))


@case()
async def an_interrupt_leaves_the_case(_: Seen) -> None:
    await fail(KeyboardInterrupt("left"))


@case()
async def an_exit_leaves_the_case(_: Seen) -> None:
    await fail(SystemExit(3))


@case()
async def a_generator_exit_leaves_the_case(_: Seen) -> None:
    await fail(GeneratorExit("left"))


@case()
async def a_stop_iteration_leaves_the_case(_: Seen) -> None:
    await fail(StopIteration("left"))


@case()
async def a_stop_async_iteration_leaves_the_case(_: Seen) -> None:
    raise StopAsyncIteration("left")


@case()
async def notes_causes_and_contexts(seen: Seen) -> None:
    async def work() -> None:
        try:
            await fail(ValueError("first"))
        except ValueError as error:
            error.add_note("a note")
            await asyncio.sleep(0)
            try:
                await fail(KeyError("second"))
            except KeyError as second:
                raise OursError(key="third") from second

    try:
        await work()
    except OursError as error:
        seen(error)
    try:
        await asyncio.create_task(work())
    except OursError as error:
        seen(error)


@case()
async def a_context_is_not_taken_from_who_awaits(seen: Seen) -> None:
    try:
        raise ValueError("handled here")
    except ValueError:
        await asyncio.sleep(0)
        child = asyncio.create_task(fail(KeyError("child")))
        await asyncio.wait([child])
        error = child.exception()
        assert error is not None
        seen(error.__context__)
        try:
            await fail(KeyError("own"))
        except KeyError as own:
            seen(own.__context__)


@case()
async def the_exception_being_handled_survives_a_pause(seen: Seen) -> None:
    import sys

    try:
        raise ValueError("handled")
    except ValueError:
        for _ in range(3):
            await asyncio.sleep(0)
            seen(sys.exc_info()[1])
    seen(sys.exc_info()[1])


@case()
async def nothing_is_being_handled_at_first(seen: Seen) -> None:
    import sys

    seen(sys.exc_info())
    await asyncio.sleep(0)
    seen(sys.exc_info())


@case()
async def one_exception_is_raised_at_two_awaits(seen: Seen) -> None:
    child = asyncio.create_task(fail(ValueError("once")))
    for _ in range(2):
        try:
            await child
        except ValueError as error:
            seen(error.args, error is child.exception())


@case()
async def except_star_across_pauses(seen: Seen) -> None:
    try:
        await fail(ExceptionGroup("three", [ValueError(1), KeyError(2), OSError(3)]))
    except* ValueError as group:
        await asyncio.sleep(0)
        seen(group)
    except* (KeyError, OSError) as group:
        await asyncio.sleep(0)
        seen(group)


@case()
async def a_return_in_finally(seen: Seen) -> None:
    async def work() -> str:
        try:
            await fail(ValueError("lost"))
        except ValueError:
            return "returned"
        finally:
            await asyncio.sleep(0)
        return "not reached"

    seen(await work())


@case()
async def deep_recursion(seen: Seen) -> None:
    async def dig(depth: int) -> int:
        return 1 + await dig(depth + 1)

    try:
        await dig(0)
    except RecursionError as error:
        seen(type(error))
    await asyncio.sleep(0)
    seen("goes on")


@case(alone=True)
async def an_exception_nobody_fetched_is_reported(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, context: seen(sorted(context), context["message"], context["exception"])
    )
    child = asyncio.create_task(fail(ValueError("nobody asks")))
    await asyncio.wait([child])
    del child
    gc.collect()
    future: asyncio.Future[None] = loop.create_future()
    future.set_exception(KeyError("nobody asks"))
    del future
    gc.collect()
    loop.set_exception_handler(None)


@case(alone=True)
async def an_exception_in_a_callback_is_reported(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: seen(sorted(context), context["exception"]))

    def fail_too() -> None:
        raise ValueError("callback")

    loop.call_soon(fail_too)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    loop.set_exception_handler(None)
    seen("goes on")


@case(alone=True)
async def an_exception_in_a_done_callback_is_reported(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: seen(sorted(context), context["exception"]))

    def fail_too(_: object) -> None:
        raise ValueError("done callback")

    child = asyncio.create_task(asyncio.sleep(0))
    child.add_done_callback(fail_too)
    child.add_done_callback(lambda _: seen("the next one is called"))
    await child
    await asyncio.sleep(0)
    loop.set_exception_handler(None)


@case()
async def awaiting_what_cannot_be_awaited(seen: Seen) -> None:
    things: tuple[Any, ...] = (None, 5, "text", [], asyncio.sleep, object)
    for thing in things:
        try:
            await thing
        except TypeError as error:
            seen(error)


@case()
async def awaiting_a_coroutine_twice(seen: Seen) -> None:
    coroutine = asyncio.sleep(0, "once")
    seen(await coroutine)
    try:
        await coroutine
    except RuntimeError as error:
        seen(error)


@case()
async def what_cannot_run_inside_a_loop(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    coroutine = asyncio.sleep(0)
    try:
        asyncio.run(coroutine)
    except RuntimeError as error:
        seen(error)
    coroutine.close()
    try:
        loop.run_until_complete(loop.create_future())
    except RuntimeError as error:
        seen(error)
