"""Eager tasks and other task factories (3.12 and later)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fidelity.account import Seen
from fidelity.registry import BOTH, case

# uvloop 0.23 passes a factory of 3.13 and later a keyword that asyncio's eager one does not take.
LOOPS = BOTH if sys.version_info < (3, 13) else frozenset({"asyncio"})


@contextmanager
def factory(made_by: Any) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(made_by)
    try:
        yield
    finally:
        loop.set_task_factory(None)


def eagerly() -> Any:
    return factory(asyncio.eager_task_factory)  # type: ignore[attr-defined, unused-ignore]


@case(alone=True, since=(3, 12), loops=LOOPS)
async def an_eager_child_runs_at_once(seen: Seen) -> None:
    outer = asyncio.current_task()

    async def work(pauses: int) -> str:
        seen("child", asyncio.current_task() is not outer)
        for _ in range(pauses):
            await asyncio.sleep(0)
        return f"{pauses} pauses"

    with eagerly():
        for pauses in (0, 1):
            child = asyncio.create_task(work(pauses))
            seen("created", child.done(), asyncio.current_task() is outer)
            seen(await child)


@case(alone=True, since=(3, 12), loops=LOOPS)
async def an_eager_child_fails_at_once(seen: Seen) -> None:
    async def fail() -> None:
        raise ValueError("at once")

    with eagerly():
        child = asyncio.create_task(fail())
        seen(child.done(), child.exception())


@case(alone=True, since=(3, 12), loops=LOOPS)
async def eager_children_in_gather_and_group(seen: Seen) -> None:
    async def work(number: int) -> int:
        seen(number)
        if number % 2:
            await asyncio.sleep(0)
        return number

    with eagerly():
        seen(await asyncio.gather(*(work(number) for number in range(4))))
        async with asyncio.TaskGroup() as group:
            children = [group.create_task(work(number)) for number in range(4)]
        seen([child.result() for child in children])


@case(alone=True, since=(3, 12), loops=LOOPS)
async def an_eager_childs_context_is_its_own(seen: Seen) -> None:
    import contextvars

    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")

    async def change() -> None:
        variable.set("child")

    with eagerly():
        await asyncio.create_task(change())
    seen(variable.get())


@case(alone=True, since=(3, 12), loops=LOOPS)
async def eager_children_have_eager_children(seen: Seen) -> None:
    async def work(depth: int) -> int:
        if depth == 0:
            return 0
        return 1 + await asyncio.create_task(work(depth - 1))

    with eagerly():
        seen(await work(20))


@case(alone=True, since=(3, 12), loops=LOOPS)
async def an_eager_child_cancels_the_handler(seen: Seen) -> None:
    task = asyncio.current_task()
    assert task is not None

    async def cancel() -> None:
        task.cancel("eagerly")

    with eagerly():
        await asyncio.create_task(cancel())
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError as error:
            seen(error, task.uncancel())


@case(alone=True, since=(3, 12), loops=LOOPS)
async def a_timeout_around_eager_children(seen: Seen) -> None:
    with eagerly():
        try:
            async with asyncio.timeout(0.01):
                await asyncio.create_task(asyncio.sleep(60))
        except TimeoutError:
            seen("timed out")


@case(alone=True)
async def a_factory_of_the_applications(seen: Seen) -> None:
    made: list[str] = []

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **keywords: Any) -> asyncio.Task[Any]:
        made.append(coroutine.__name__)
        return asyncio.Task(coroutine, loop=loop, **keywords)

    async def work() -> str:
        return "made"

    with factory(make):
        seen(await asyncio.create_task(work()), await asyncio.gather(work(), work()))
        async with asyncio.TaskGroup() as group:
            child = group.create_task(work())
        seen(made, child.result(), asyncio.get_running_loop().get_task_factory() is make)


@case(alone=True)
async def a_factory_does_not_meet_the_handler(seen: Seen) -> None:
    """A request's task is the server's: what the application sets makes the next ones."""
    made: list[str] = []

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **keywords: Any) -> asyncio.Task[Any]:
        made.append(coroutine.__name__)
        return asyncio.Task(coroutine, loop=loop, **keywords)

    with factory(make):
        await asyncio.sleep(0)
        seen(made)
