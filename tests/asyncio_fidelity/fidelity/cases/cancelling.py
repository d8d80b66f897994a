"""Cancellation of the handler's own task, and of others."""

from __future__ import annotations

import asyncio

from fidelity.account import Seen
from fidelity.registry import case
from fidelity.turns import soon


def task() -> asyncio.Task[object]:
    current = asyncio.current_task()
    assert current is not None
    return current


@case()
async def cancelled_once(seen: Seen) -> None:
    soon(task().cancel)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error, task().cancelling())
    seen(task().uncancel(), task().cancelling())
    await asyncio.sleep(0)
    seen("goes on")


@case()
async def cancelled_with_a_message(seen: Seen) -> None:
    for message in ("why", None, 5, ("a", "tuple")):
        soon(task().cancel, message)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            seen(error.args)
        task().uncancel()


@case()
async def cancelling_oneself_strikes_at_the_next_await(seen: Seen) -> None:
    seen(task().cancel("myself"), task().cancelling())
    seen("still here")
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError as error:
        seen(error)
    await asyncio.sleep(0)
    seen(task().uncancel())


@case()
async def cancelling_oneself_strikes_where_nothing_is_awaited(seen: Seen) -> None:
    """What is done already is no place to be struck at."""
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    done.set_result("done")
    task().cancel("myself")
    seen(await done)
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError as error:
        seen(error, task().uncancel())


@case()
async def cancelling_oneself_twice_strikes_once(seen: Seen) -> None:
    seen(task().cancel("one"), task().cancel("two"), task().cancelling())
    struck = 0
    for _ in range(3):
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError as error:
            struck += 1
            seen(error)
    seen(struck, task().uncancel(), task().uncancel(), task().uncancel())


@case()
async def cancelled_twice_in_one_wait(seen: Seen) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    soon(task().cancel, "one")
    soon(task().cancel, "two")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error)
    soon(future.set_result, None)
    await future
    seen(task().cancelling())
    while task().cancelling():
        task().uncancel()


@case()
async def cancelled_again_while_cleaning_up(seen: Seen) -> None:
    soon(task().cancel, "one")
    try:
        try:
            await asyncio.sleep(60)
        finally:
            soon(task().cancel, "two")
            await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error, task().cancelling())
    while task().cancelling():
        task().uncancel()


@case()
async def swallowed_and_waiting_again(seen: Seen) -> None:
    soon(task().cancel)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        seen("swallowed")
    await asyncio.sleep(0.001)
    seen(task().cancelling(), await asyncio.to_thread(lambda: "thread"))
    async with asyncio.timeout(60):
        await asyncio.sleep(0)
    seen(task().cancelling(), task().uncancel())


@case()
async def uncancel_takes_back_what_has_not_struck(seen: Seen) -> None:
    """3.13 takes it back, earlier Pythons do not."""
    task().cancel("taken back")
    seen(task().uncancel())
    try:
        await asyncio.sleep(0)
        seen("not struck")
    except asyncio.CancelledError as error:
        seen(error)


@case()
async def uncancel_goes_no_lower_than_zero(seen: Seen) -> None:
    seen(task().uncancel(), task().uncancel(), task().cancelling())


@case()
async def cancelled_by_another_request(seen: Seen) -> None:
    target = task()

    async def cancel() -> None:
        seen(target.cancel("another request"), target is task())

    errand = asyncio.create_task(seen.world.elsewhere(cancel))
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error, task().uncancel())
    await errand


@case()
async def cancelled_by_another_request_in_a_wait_for_what_never_comes(seen: Seen) -> None:
    target = task()

    async def cancel() -> None:
        seen(target.cancel("another request"))

    errand = asyncio.create_task(seen.world.elsewhere(cancel))
    try:
        await seen.world.wait_for_ever()
    except asyncio.CancelledError as error:
        seen(error.args, task().uncancel())
    await errand


@case()
async def cancelled_in_a_wait_for_what_never_comes_again_and_again(seen: Seen) -> None:
    for number in range(5):
        soon(task().cancel, number)
        try:
            await seen.world.wait_for_ever()
        except asyncio.CancelledError as error:
            seen(error.args, task().uncancel())


@case()
async def cancelled_from_a_thread(seen: Seen) -> None:
    loop, target = asyncio.get_running_loop(), task()
    waiting = loop.run_in_executor(None, loop.call_soon_threadsafe, target.cancel, "thread")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error, task().uncancel())
    await waiting


@case()
async def cancelled_by_its_own_child(seen: Seen) -> None:
    target = task()

    async def cancel() -> None:
        seen(target.cancel("child"), target.cancelling())
        await asyncio.sleep(0)
        seen("child goes on")

    child = asyncio.create_task(cancel())
    try:
        await child
    except asyncio.CancelledError as error:
        seen(error, child.cancelled(), child.done(), task().uncancel())


@case()
async def the_wait_is_over_and_cancelled_in_the_same_turn(seen: Seen) -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    soon(future.set_result, "result")
    soon(task().cancel, "too late for the wait")
    try:
        seen(await future)
        await asyncio.sleep(0)
        seen("not struck")
    except asyncio.CancelledError as error:
        seen(error)
    seen(task().cancelling(), task().uncancel())


@case()
async def cancelled_and_then_the_wait_is_over(seen: Seen) -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def set_result() -> None:
        seen("settable", not future.done())

    soon(task().cancel, "first")
    soon(set_result)
    try:
        seen(await future)
    except asyncio.CancelledError as error:
        seen(error, future.cancelled(), task().uncancel())


@case()
async def cancelled_while_awaiting_a_task(seen: Seen) -> None:
    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            seen("child", error)
            raise

    child = asyncio.create_task(wait())
    soon(task().cancel, "handler")
    try:
        await child
    except asyncio.CancelledError as error:
        seen("handler", error, child.cancelled(), task().uncancel())


@case()
async def cancelled_while_awaiting_a_task_that_does_not_give_in(seen: Seen) -> None:
    async def swallow() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "result"

    child = asyncio.create_task(swallow())
    soon(task().cancel, "handler")
    seen(await child, task().cancelling(), task().uncancel())
    await asyncio.sleep(0)


@case()
async def what_was_waited_for_is_cancelled(seen: Seen) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    soon(future.cancel, "future")
    try:
        await future
    except asyncio.CancelledError as error:
        seen(error, task().cancelling())


@case()
async def a_child_is_cancelled_before_its_first_step(seen: Seen) -> None:
    async def never() -> None:
        seen("never")

    child = asyncio.create_task(never())
    seen(child.cancel("early"))
    try:
        await child
    except asyncio.CancelledError as error:
        seen(error, child.cancelled())


@case()
async def a_child_that_is_done_cannot_be_cancelled(seen: Seen) -> None:
    child = asyncio.create_task(asyncio.sleep(0, "result"))
    await child
    seen(child.cancel(), child.cancelling(), child.cancelled(), child.result())


@case()
async def a_cancelled_child_cleans_up_with_awaits(seen: Seen) -> None:
    async def clean() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for number in range(3):
                await asyncio.sleep(0)
                seen("cleaning", number)

    child = asyncio.create_task(clean())
    await asyncio.sleep(0)
    child.cancel()
    await asyncio.wait([child])
    seen(child.cancelled())


@case()
async def a_childs_result_after_it_swallowed(seen: Seen) -> None:
    async def swallow() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "swallowed"
        return "not reached"

    child = asyncio.create_task(swallow())
    await asyncio.sleep(0)
    child.cancel()
    seen(await child, child.cancelled(), child.cancelling())


@case()
async def a_cancelled_error_raised_by_hand(seen: Seen) -> None:
    async def raise_it() -> None:
        raise asyncio.CancelledError("by", "hand")

    try:
        await raise_it()
    except asyncio.CancelledError as error:
        seen(error, task().cancelling())
    child = asyncio.create_task(raise_it())
    try:
        await child
    except asyncio.CancelledError as error:
        seen(error, child.cancelled(), child.cancelling())


@case()
async def a_cancelled_error_ends_in_another_exception(seen: Seen) -> None:
    soon(task().cancel, "why")
    try:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            raise ValueError("instead") from error
    except ValueError as error:
        seen(error, task().uncancel())


@case()
async def a_cancellation_leaves_the_case(seen: Seen) -> None:
    soon(task().cancel, "out of the case")
    try:
        await asyncio.sleep(60)
    finally:
        seen(task().uncancel())


@case()
async def cancelled_while_holding_on_to_a_generator(seen: Seen) -> None:
    async def numbers() -> object:
        try:
            for number in range(100):
                yield number
                await asyncio.sleep(60)
        finally:
            seen("generator closed")

    soon(task().cancel, "in the generator")
    try:
        async for number in numbers():  # type: ignore[attr-defined]
            seen(number)
    except asyncio.CancelledError as error:
        seen(error, task().uncancel())


@case()
async def cancelled_at_each_of_many_awaits(seen: Seen) -> None:
    struck = 0
    for _ in range(200):
        soon(task().cancel)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            struck += 1
            task().uncancel()
    seen(struck, task().cancelling())
