"""Context variables: across pauses, into children and threads, and not into other requests."""

from __future__ import annotations

import asyncio
import contextvars
import decimal
from typing import Any

from fidelity.account import Seen
from fidelity.registry import case

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")
leaking: contextvars.ContextVar[str] = contextvars.ContextVar("leaking", default="not set")


@case()
async def a_value_stays_across_pauses(seen: Seen) -> None:
    variable.set("set")
    for _ in range(3):
        await asyncio.sleep(0)
        seen(variable.get())
    await asyncio.sleep(0.001)
    seen(variable.get())


@case()
async def a_value_stays_across_another_request(seen: Seen) -> None:
    async def set_it() -> None:
        seen("there", variable.get())
        variable.set("other")

    variable.set("set")
    # In a context of its own, since another request does not inherit from this one.
    await asyncio.create_task(seen.world.elsewhere(set_it), context=contextvars.Context())
    seen(variable.get())


@case()
async def nothing_is_left_of_an_earlier_request(seen: Seen) -> None:
    seen(leaking.get())
    leaking.set("leaked")
    await asyncio.sleep(0)
    seen(leaking.get())


@case()
async def a_value_is_reset_after_a_pause(seen: Seen) -> None:
    token = variable.set("set")
    await asyncio.sleep(0)
    variable.reset(token)
    seen(variable.get())


@case()
async def a_value_is_reset_in_a_timeouts_exit(seen: Seen) -> None:
    token = variable.set("set")
    try:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)
    except TimeoutError:
        variable.reset(token)
    seen(variable.get())


@case()
async def a_child_inherits_and_gives_nothing_back(seen: Seen) -> None:
    async def change() -> None:
        seen("child", variable.get())
        variable.set("child")
        await asyncio.sleep(0)
        seen("child", variable.get())

    variable.set("handler")
    child = asyncio.create_task(change())
    variable.set("later")
    await child
    seen("handler", variable.get())


@case()
async def a_child_with_a_context_of_its_own(seen: Seen) -> None:
    context = contextvars.copy_context()
    context.run(variable.set, "given")

    async def change() -> None:
        seen(variable.get())
        variable.set("changed")

    await asyncio.create_task(change(), context=context)
    seen(variable.get(), context[variable])


@case()
async def a_child_shares_the_handlers_context(seen: Seen) -> None:
    """What pytest-asyncio and others do."""

    async def change() -> None:
        variable.set("changed by the child")

    copy = contextvars.copy_context()
    await asyncio.create_task(change(), context=copy)
    seen(variable.get(), copy[variable])


@case()
async def callbacks_see_the_context_they_were_scheduled_in(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    variable.set("scheduled")
    loop.call_soon(lambda: seen("soon", variable.get()))
    given = contextvars.Context()
    loop.call_soon(lambda: seen("given", variable.get()), context=given)
    variable.set("changed")
    await asyncio.sleep(0)
    loop.call_later(0.001, lambda: seen("later", variable.get()))
    loop.call_later(0.002, over.set)
    variable.set("changed again")
    await over.wait()


@case()
async def a_done_callback_sees_the_context_it_was_added_in(seen: Seen) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    variable.set("added")
    future.add_done_callback(lambda _: seen(variable.get()))
    variable.set("changed")
    future.set_result(None)
    await asyncio.sleep(0)
    seen(variable.get())


@case()
async def a_generator_sees_its_callers_context(seen: Seen) -> None:
    async def values() -> object:
        while True:
            yield variable.get()
            variable.set("by the generator")

    variable.set("handler")
    generator = values()
    seen(await anext(generator), variable.get())  # type: ignore[call-overload]
    seen(await anext(generator), variable.get())  # type: ignore[call-overload]
    await generator.aclose()  # type: ignore[attr-defined]


@case()
async def the_decimal_context(seen: Seen) -> None:
    decimal.getcontext().prec = 5
    await asyncio.sleep(0)
    seen(str(decimal.Decimal(1) / 3))
    seen(await asyncio.to_thread(lambda: str(decimal.Decimal(1) / 3)))


@case()
async def the_context_cannot_be_entered_twice(seen: Seen) -> None:
    child = asyncio.create_task(asyncio.sleep(0))
    if hasattr(child, "get_context"):
        try:
            asyncio.current_task().get_context().run(int)  # type: ignore[union-attr]
        except RuntimeError as error:
            seen(type(error), str(error).partition(":")[0])
    await child


@case(since=(3, 12))
async def the_tasks_context_is_the_current_one(seen: Seen) -> None:
    task: Any = asyncio.current_task()
    variable.set("set")
    seen(task.get_context()[variable], contextvars.copy_context()[variable])
    await asyncio.sleep(0)
    variable.set("again")
    seen(task.get_context()[variable])


@case()
async def a_copy_runs_code_of_its_own(seen: Seen) -> None:
    copy = contextvars.copy_context()
    seen(copy.run(variable.set, "copy").old_value is contextvars.Token.MISSING)
    seen(variable.get(), copy[variable])


@case()
async def eight_children_keep_apart(seen: Seen) -> None:
    async def keep(number: int) -> bool:
        variable.set(str(number))
        for _ in range(10):
            await asyncio.sleep(0)
            if variable.get() != str(number):
                return False
        return True

    seen(await asyncio.gather(*(keep(number) for number in range(8))), variable.get())
