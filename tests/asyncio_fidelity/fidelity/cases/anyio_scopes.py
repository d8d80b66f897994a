"""anyio's cancel scopes: level cancellation, shields, deadlines."""

from __future__ import annotations

import asyncio
import math

import anyio

from fidelity.account import Seen
from fidelity.registry import case


def cancelling() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


@case()
async def move_on_after(seen: Seen) -> None:
    with anyio.move_on_after(0.01) as scope:
        await anyio.sleep(60)
    seen(scope.cancelled_caught, scope.cancel_called, cancelling())


@case()
async def move_on_after_around_what_never_comes(seen: Seen) -> None:
    with anyio.move_on_after(0.01) as scope:
        await seen.world.wait_for_ever()
    seen(scope.cancelled_caught, cancelling())


@case()
async def fail_after(seen: Seen) -> None:
    try:
        with anyio.fail_after(0.01):
            await anyio.sleep(60)
    except TimeoutError as error:
        seen(type(error), error.args, cancelling())


@case()
async def fail_after_in_time(seen: Seen) -> None:
    with anyio.fail_after(60) as scope:
        await anyio.sleep(0)
    seen(scope.cancelled_caught, scope.cancel_called)


@case()
async def a_scope_is_cancelled_at_once(seen: Seen) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        seen("before the checkpoint")
        await anyio.sleep(0)
        seen("not reached")
    seen(scope.cancelled_caught, cancelling())


@case()
async def a_cancelled_scope_strikes_at_every_checkpoint(seen: Seen) -> None:
    """Level, not edge: that is what differs from asyncio."""
    struck = 0
    with anyio.CancelScope() as scope:
        scope.cancel()
        for _ in range(5):
            try:
                await anyio.sleep(60)
            except anyio.get_cancelled_exc_class():
                struck += 1
        seen(struck)
        await anyio.sleep(0)
    seen(scope.cancelled_caught, cancelling())
    await anyio.sleep(0)


@case()
async def a_cancelled_scope_strikes_at_asyncios_awaits(seen: Seen) -> None:
    struck = 0
    future = asyncio.get_running_loop().create_future()
    with anyio.CancelScope() as scope:
        scope.cancel()
        for awaitable in (asyncio.sleep(60), asyncio.Event().wait(), asyncio.shield(future)):
            try:
                await awaitable
            except asyncio.CancelledError:
                struck += 1
    seen(struck, scope.cancelled_caught, cancelling())
    future.cancel()


@case()
async def a_shield_holds_it_off(seen: Seen) -> None:
    with anyio.CancelScope() as outer:
        outer.cancel()
        with anyio.CancelScope(shield=True) as inner:
            await anyio.sleep(0.001)
            seen("shielded", inner.cancelled_caught)
        await anyio.sleep(0)
        seen("not reached")
    seen(outer.cancelled_caught)


@case()
async def a_shield_is_lowered(seen: Seen) -> None:
    with anyio.CancelScope() as outer:
        outer.cancel()
        with anyio.CancelScope(shield=True) as inner:
            await anyio.sleep(0)
            inner.shield = False
            try:
                await anyio.sleep(60)
            finally:
                seen("lowered")
    seen(outer.cancelled_caught, inner.cancelled_caught)


@case()
async def a_scope_in_a_scope(seen: Seen) -> None:
    with anyio.CancelScope() as outer:
        with anyio.CancelScope() as inner:
            inner.cancel()
            await anyio.sleep(60)
        seen("inner", inner.cancelled_caught, outer.cancel_called)
        outer.cancel()
        await anyio.sleep(60)
    seen("outer", outer.cancelled_caught)


@case()
async def the_outer_scope_is_cancelled_from_the_inner(seen: Seen) -> None:
    with anyio.CancelScope() as outer:
        with anyio.CancelScope() as inner:
            outer.cancel()
            await anyio.sleep(60)
        seen("not reached")
    seen(outer.cancelled_caught, inner.cancelled_caught, cancelling())


@case()
async def a_deadline_is_moved(seen: Seen) -> None:
    with anyio.CancelScope(deadline=anyio.current_time() + 0.01) as scope:
        scope.deadline = math.inf
        await anyio.sleep(0.03)
        seen("not struck")
        scope.deadline = anyio.current_time()
        await anyio.sleep(60)
    seen(scope.cancelled_caught, anyio.current_effective_deadline())


@case()
async def a_deadline_that_has_passed(seen: Seen) -> None:
    with anyio.CancelScope(deadline=-math.inf) as scope:
        await anyio.sleep(60)
    seen(scope.cancelled_caught)


@case()
async def a_scope_is_cancelled_by_another_request(seen: Seen) -> None:
    async def cancel() -> None:
        scope.cancel()

    with anyio.CancelScope() as scope:
        errand = asyncio.create_task(seen.world.elsewhere(cancel))
        await anyio.sleep(60)
    seen(scope.cancelled_caught, cancelling())
    await errand


@case()
async def a_native_cancellation_in_a_scope(seen: Seen) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel, "native")
    with anyio.CancelScope() as scope:
        try:
            await anyio.sleep(60)
        except asyncio.CancelledError as error:
            seen(error.args, scope.cancel_called, task.uncancel())
    seen(scope.cancelled_caught)


@case()
async def a_native_timeout_in_a_scope_and_a_scope_in_a_native_timeout(seen: Seen) -> None:
    with anyio.CancelScope() as scope:
        try:
            async with asyncio.timeout(0.01):
                await anyio.sleep(60)
        except TimeoutError:
            seen("timeout", scope.cancel_called, cancelling())
    async with asyncio.timeout(60) as timeout:
        with anyio.move_on_after(0.01) as scope:
            await asyncio.sleep(60)
        seen("moved on", scope.cancelled_caught, timeout.expired(), cancelling())


@case()
async def checkpoints(seen: Seen) -> None:
    import anyio.lowlevel

    asyncio.get_running_loop().call_soon(seen, "callback")
    await anyio.lowlevel.checkpoint()
    seen("checkpoint")
    await anyio.lowlevel.cancel_shielded_checkpoint()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await anyio.lowlevel.cancel_shielded_checkpoint()
        seen("shielded")
        await anyio.lowlevel.checkpoint_if_cancelled()
        seen("not reached")
    seen(scope.cancelled_caught)


@case()
async def exceptions_leave_a_cancelled_scope(seen: Seen) -> None:
    try:
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await anyio.sleep(60)
            finally:
                raise ValueError("instead")
    except ValueError as error:
        seen(error.args, scope.cancelled_caught, cancelling())


@case()
async def a_scope_is_left_in_another_order(seen: Seen) -> None:
    outer, inner = anyio.CancelScope(), anyio.CancelScope()
    outer.__enter__()
    inner.__enter__()
    try:
        outer.__exit__(None, None, None)
    except RuntimeError as error:
        seen(error.args)
    inner.__exit__(None, None, None)


@case()
async def twenty_scopes_after_another(seen: Seen) -> None:
    caught = 0
    for _ in range(20):
        with anyio.move_on_after(0) as scope:
            await anyio.sleep(60)
        caught += scope.cancelled_caught
    seen(caught, cancelling())
