"""`asyncio.timeout` and what may happen inside."""

from __future__ import annotations

import asyncio

from fidelity.account import Seen
from fidelity.registry import case


def task() -> asyncio.Task[object]:
    current = asyncio.current_task()
    assert current is not None
    return current


@case()
async def a_timeout_that_is_not_needed(seen: Seen) -> None:
    async with asyncio.timeout(60) as scope:
        await asyncio.sleep(0)
        seen(scope.expired(), scope.when() is not None)
    seen(scope.expired(), task().cancelling())


@case()
async def a_timeout_that_expires(seen: Seen) -> None:
    try:
        async with asyncio.timeout(0.01) as scope:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError as error:
                seen("inside", error, task().cancelling())
                raise
    except TimeoutError as error:
        seen(error, scope.expired(), task().cancelling())


@case()
async def a_timeout_around_what_never_comes(seen: Seen) -> None:
    try:
        async with asyncio.timeout(0.01):
            await seen.world.wait_for_ever()
    except TimeoutError as error:
        seen(type(error), task().cancelling())


@case()
async def a_timeout_of_zero_lets_one_step_through(seen: Seen) -> None:
    for seconds in (0, -1):
        try:
            async with asyncio.timeout(seconds):
                seen("inside")
                await asyncio.sleep(60)
        except TimeoutError as error:
            seen(error)


@case()
async def a_timeout_of_zero_around_no_await(seen: Seen) -> None:
    async with asyncio.timeout(0) as scope:
        seen("inside")
    await asyncio.sleep(0)
    seen(scope.expired(), task().cancelling())


@case()
async def no_timeout(seen: Seen) -> None:
    async with asyncio.timeout(None) as scope:
        seen(scope.when())
        await asyncio.sleep(0)
    seen(scope)


@case()
async def timeout_at(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout_at(loop.time() - 1):
            await asyncio.sleep(60)
    except TimeoutError as error:
        seen(error)


@case()
async def a_timeout_is_put_off(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(0.01) as scope:
        scope.reschedule(loop.time() + 60)
        await asyncio.sleep(0.03)
        seen(scope.expired())
        scope.reschedule(None)
        seen(scope.when())


@case()
async def a_timeout_is_brought_forward(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(60) as scope:
            scope.reschedule(loop.time())
            await asyncio.sleep(60)
    except TimeoutError:
        seen(scope.expired())


@case()
async def the_inner_timeout_expires(seen: Seen) -> None:
    async with asyncio.timeout(60) as outer:
        try:
            async with asyncio.timeout(0.01) as inner:
                await asyncio.sleep(60)
        except TimeoutError as error:
            seen(error)
        seen(outer.expired(), inner.expired(), task().cancelling())
        await asyncio.sleep(0)
    seen("after")


@case()
async def the_outer_timeout_expires(seen: Seen) -> None:
    try:
        async with asyncio.timeout(0.01) as outer:
            try:
                async with asyncio.timeout(60) as inner:
                    await asyncio.sleep(60)
            finally:
                seen("inner left", inner.expired(), task().cancelling())
    except TimeoutError as error:
        seen(error, outer.expired(), inner.expired(), task().cancelling())


@case()
async def both_timeouts_expire_at_once(seen: Seen) -> None:
    when = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(when) as outer:
            try:
                async with asyncio.timeout_at(when) as inner:
                    await asyncio.sleep(60)
            except TimeoutError as error:
                seen("inner", error, task().cancelling())
                await asyncio.sleep(60)
    except TimeoutError as error:
        seen("outer", error, outer.expired(), inner.expired(), task().cancelling())


@case()
async def ten_timeouts_one_in_another(seen: Seen) -> None:
    async def go(depth: int) -> None:
        try:
            async with asyncio.timeout(0.01 if depth == 5 else 60):
                if depth == 9:
                    await asyncio.sleep(60)
                await go(depth + 1)
        except TimeoutError as error:
            seen(depth, error)

    await go(0)
    seen(task().cancelling())


@case()
async def an_exception_passes_a_timeout(seen: Seen) -> None:
    for error in (ValueError("own"), TimeoutError("own"), asyncio.CancelledError("own")):
        try:
            async with asyncio.timeout(60):
                raise error
        except BaseException as caught:
            seen(caught)


@case()
async def an_exception_after_the_timeout_has_expired(seen: Seen) -> None:
    try:
        async with asyncio.timeout(0.01):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise ValueError("instead") from None
    except Exception as error:
        seen(error, task().cancelling())


@case()
async def a_swallowed_timeout(seen: Seen) -> None:
    try:
        async with asyncio.timeout(0.01) as scope:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen("swallowed")
            await asyncio.sleep(0)
            seen("goes on", scope.expired())
    finally:
        seen(task().cancelling())


@case()
async def cancelled_from_outside_inside_a_timeout(seen: Seen) -> None:
    asyncio.get_running_loop().call_soon(task().cancel, "outside")
    try:
        async with asyncio.timeout(60) as scope:
            await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error, scope.expired(), task().cancelling(), task().uncancel())


@case()
async def cancelled_from_outside_and_expired_at_once(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(60) as scope:
            loop.call_soon(task().cancel, "outside")
            scope.reschedule(loop.time() - 1)
            await asyncio.sleep(60)
    except BaseException as error:
        seen(type(error), task().cancelling())
        task().uncancel()


@case()
async def a_timeout_is_used_twice(seen: Seen) -> None:
    scope = asyncio.timeout(60)
    async with scope:
        pass
    try:
        async with scope:
            pass
    except RuntimeError as error:
        seen(error)


@case()
async def a_timeout_is_rescheduled_too_early_or_late(seen: Seen) -> None:
    scope = asyncio.timeout(60)
    for _ in range(2):
        try:
            scope.reschedule(1)
        except (RuntimeError, AssertionError) as error:
            seen(type(error), str(error))
        async with asyncio.timeout(60) as scope:
            pass


@case()
async def a_timeout_in_a_loop(seen: Seen) -> None:
    expired = 0
    for _ in range(20):
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(60)
        except TimeoutError:
            expired += 1
    seen(expired, task().cancelling())


@case()
async def a_timeout_around_a_task_group(seen: Seen) -> None:
    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            seen("ended")

    try:
        async with asyncio.timeout(0.01), asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(wait())
    except TimeoutError as error:
        seen(error, task().cancelling())


@case()
async def a_timeout_around_a_thread(seen: Seen) -> None:
    import threading

    gate = threading.Event()
    try:
        async with asyncio.timeout(0.01):
            await asyncio.to_thread(gate.wait)
    except TimeoutError as error:
        seen(type(error))
    finally:
        gate.set()


@case()
async def the_shape_of_a_timeouts_repr(seen: Seen) -> None:
    scope = asyncio.timeout(None)
    seen(repr(scope))
    async with scope:
        seen(repr(scope))
    seen(repr(scope))
