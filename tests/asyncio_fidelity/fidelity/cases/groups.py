"""`asyncio.TaskGroup`."""

from __future__ import annotations

import asyncio

from fidelity.account import Seen
from fidelity.registry import case
from fidelity.turns import soon


def task() -> asyncio.Task[object]:
    current = asyncio.current_task()
    assert current is not None
    return current


async def value(of: int, turns: int = 1) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    return of


async def fail(error: BaseException, turns: int = 1) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    raise error


async def wait_long(seen: Seen, name: str) -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(name, error)
        raise


@case()
async def a_group_waits_for_its_children(seen: Seen) -> None:
    async with asyncio.TaskGroup() as group:
        children = [group.create_task(value(number, number)) for number in range(5)]
    seen([child.result() for child in children])


@case()
async def an_empty_group(seen: Seen) -> None:
    async with asyncio.TaskGroup() as group:
        seen(type(group))
    seen("left")


@case()
async def a_failing_child_cancels_the_others(seen: Seen) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            # They are cancelled in the order of a set.
            group.create_task(wait_long(seen, "a or b"))
            group.create_task(wait_long(seen, "a or b"))
            group.create_task(fail(ValueError("failed"), 2))
    except BaseException as error:
        seen(error, task().cancelling())


@case()
async def two_children_fail(seen: Seen) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(ValueError("first"), 1))
            group.create_task(fail(KeyError("second"), 1))
            group.create_task(wait_long(seen, "other"))
    except* ValueError as group_of_errors:
        seen(group_of_errors)
    except* KeyError as group_of_errors:
        seen(group_of_errors)


@case()
async def a_failing_child_interrupts_the_handler(seen: Seen) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(ValueError("failed"), 1))
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError as error:
                seen("handler", error, task().cancelling())
                raise
    except BaseException as error:
        seen(error, task().cancelling())


@case()
async def a_failing_child_interrupts_a_wait_for_what_never_comes(seen: Seen) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(ValueError("failed"), 1))
            await seen.world.wait_for_ever()
    except BaseException as error:
        seen(type(error), task().cancelling())


@case()
async def the_body_fails(seen: Seen) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait_long(seen, "child"))
            await asyncio.sleep(0)
            raise ValueError("body")
    except BaseException as error:
        seen(error)


@case()
async def the_body_and_a_child_fail(seen: Seen) -> None:
    async def fail_when_cancelled() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise KeyError("child")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail_when_cancelled())
            await asyncio.sleep(0)
            raise ValueError("body")
    except BaseException as error:
        seen(error)


@case()
async def a_child_is_cancelled_alone(seen: Seen) -> None:
    async with asyncio.TaskGroup() as group:
        child = group.create_task(wait_long(seen, "child"))
        await asyncio.sleep(0)
        child.cancel("only this one")
    seen(child.cancelled(), task().cancelling())


@case()
async def the_handler_is_cancelled_in_its_group(seen: Seen) -> None:
    soon(task().cancel, "outside")
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait_long(seen, "child"))
    except asyncio.CancelledError as error:
        seen(error, task().cancelling(), task().uncancel())


@case()
async def the_handler_is_cancelled_while_a_child_fails(seen: Seen) -> None:
    async def fail_and_cancel() -> None:
        parent.cancel("outside")
        raise ValueError("failed")

    parent = task()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail_and_cancel())
            await asyncio.sleep(60)
    except BaseException as error:
        seen(type(error), getattr(error, "exceptions", None), task().cancelling())
        while task().cancelling():
            task().uncancel()


@case()
async def the_handler_is_cancelled_twice_in_its_group(seen: Seen) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen("child was told", parent.cancelling())
            parent.cancel("again")
        await asyncio.sleep(0.001)
        seen("child goes on", parent.cancelling())

    parent = task()
    soon(parent.cancel, "once")
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(stubborn())
    except BaseException as error:
        seen(type(error), task().cancelling())
        while task().cancelling():
            task().uncancel()


@case()
async def a_group_in_a_group(seen: Seen) -> None:
    try:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(wait_long(seen, "outer child"))
            async with asyncio.TaskGroup() as inner:
                inner.create_task(wait_long(seen, "inner child"))
                inner.create_task(fail(ValueError("inner"), 2))
    except BaseException as error:
        seen(error, task().cancelling())


@case()
async def a_child_has_a_group_of_its_own(seen: Seen) -> None:
    async def child() -> None:
        async with asyncio.TaskGroup() as inner:
            inner.create_task(fail(ValueError("grandchild"), 1))
            await asyncio.sleep(60)

    try:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(child())
            outer.create_task(wait_long(seen, "sibling"))
    except BaseException as error:
        seen(error)


@case()
async def children_are_added_by_children(seen: Seen) -> None:
    async def add(depth: int) -> None:
        seen("at", depth)
        if depth:
            group.create_task(add(depth - 1))

    async with asyncio.TaskGroup() as group:
        group.create_task(add(4))
    seen("left")


@case()
async def a_group_refuses_when_it_is_over_or_not_begun(seen: Seen) -> None:
    group = asyncio.TaskGroup()
    for _ in range(2):
        coroutine = value(1)
        try:
            group.create_task(coroutine)
        except RuntimeError as error:
            seen(type(error), str(error).partition("<")[0])
        finally:
            coroutine.close()
        async with asyncio.TaskGroup() as group:
            pass


@case()
async def a_group_is_entered_twice(seen: Seen) -> None:
    group = asyncio.TaskGroup()
    async with group:
        try:
            async with group:
                pass
        except RuntimeError as error:
            seen(type(error), str(error).partition("<")[0])


@case()
async def a_group_names_its_children(seen: Seen) -> None:
    async with asyncio.TaskGroup() as group:
        seen(group.create_task(value(1), name="by name").get_name())


@case()
async def a_childs_own_cancelled_error_ends_only_itself(seen: Seen) -> None:
    async def raise_it() -> None:
        raise asyncio.CancelledError("of itself")

    async with asyncio.TaskGroup() as group:
        child = group.create_task(raise_it())
        other = group.create_task(value(1, 4))
    seen(child.cancelled(), other.result())


@case()
async def a_base_exception_in_a_child(seen: Seen) -> None:
    class Ours(BaseException):
        pass

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait_long(seen, "sibling"))
            group.create_task(fail(Ours("base"), 2))
    except BaseException as error:
        seen(type(error), [str(each) for each in getattr(error, "exceptions", ())])


@case()
async def an_interrupt_in_the_body_comes_alone(seen: Seen) -> None:
    for error in (KeyboardInterrupt("key"), SystemExit(3)):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(wait_long(seen, "child"))
                await asyncio.sleep(0)
                raise error
        except BaseException as caught:
            seen(caught)


@case()
async def a_hundred_children(seen: Seen) -> None:
    async with asyncio.TaskGroup() as group:
        children = [group.create_task(value(number, number % 7)) for number in range(100)]
    seen(sum(child.result() for child in children))
