"""For whose sake a task runs: found from who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio
import pytest

from bridgehead import asgi, awaiters

Child = Callable[[], Coroutine[Any, Any, None]]
Handler = Callable[[Child], Awaitable[object]]


class OfNoInterest:
    """What Rust has of a request."""

    def settle(self) -> None:
        pass


async def directly(child: Child) -> None:
    await asyncio.ensure_future(child())


async def gathered(child: Child) -> None:
    await asyncio.gather(asyncio.sleep(0), child())


async def in_a_group(child: Child) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(child())
        await asyncio.sleep(0)


async def in_a_group_of_anyios(child: Child) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(child)


async def waited_for(child: Child) -> None:
    await asyncio.wait([asyncio.ensure_future(child())])


async def waited_for_so_long(child: Child) -> None:
    await asyncio.wait_for(child(), 60)


async def shielded(child: Child) -> None:
    await asyncio.shield(child())


async def as_completed(child: Child) -> None:
    for each in asyncio.as_completed([child()]):
        await each


async def through_others(child: Child) -> None:
    await asyncio.gather(in_a_group(lambda: shielded(child)))


WAYS = [
    directly,
    gathered,
    in_a_group,
    in_a_group_of_anyios,
    waited_for,
    waited_for_so_long,
    shielded,
    as_completed,
    through_others,
]


def found_by_the_child_of(handler: Handler) -> list[dict[str, Any]]:
    """What a child of a request's handler finds in its first step and once it was resumed."""
    found: list[dict[str, Any]] = []

    async def child() -> None:
        found.append(awaiters.scope_behind(asyncio.current_task()))
        await asyncio.sleep(0)
        found.append(awaiters.scope_behind(asyncio.current_task()))

    async def application(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        await handler(child)

    http: Any = OfNoInterest()
    asyncio.run(asgi.answer(application, {"path": "/whose"}, http, http, http))
    return found


@pytest.mark.parametrize("handler", WAYS, ids=lambda way: way.__name__)
def test_a_task_runs_for_the_request_that_waits_for_it(handler: Handler) -> None:
    assert found_by_the_child_of(handler) == [{"path": "/whose"}] * 2


def test_a_task_for_which_nobody_waits_runs_for_none() -> None:
    left: set[asyncio.Future[None]] = set()

    async def leaves_it(child: Child) -> None:
        left.add(alone := asyncio.ensure_future(child()))
        alone.add_done_callback(left.discard)
        while left:
            await asyncio.sleep(0)

    assert found_by_the_child_of(leaves_it) == [{}, {}]


def test_no_task_runs_for_none() -> None:
    assert awaiters.scope_behind(None) == {}
