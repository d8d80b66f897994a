"""Which tasks requests run as, and a trial of ours on the loop before the first request.

Not the names (`private_names.py`) nor the task (`request_task.py`).

Invariant: a request runs under a task of ours only after one went through all that requests go through.
"""

import asyncio
import contextvars
from dataclasses import dataclass
from typing import Any

from bridgehead import log
from bridgehead._native import Driver, Wait
from bridgehead.private_names import TaskNames, task_names
from bridgehead.request_task import RequestTask

_TURNS = 20  # of the loop; the trial takes five


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the server runs coroutines by; read by Rust."""

    task_type: type[asyncio.Task[Any]]
    driver: Driver


class _FailedError(Exception):
    """Something came out otherwise; says what."""


async def choose(wanted: str) -> Chosen | None:
    """What `--task-impl` asks for, on the running loop; None: asyncio's own tasks."""
    if wanted != "rust":
        return None
    try:
        names = task_names()
        _try_entering(names)
        _try_yielding(names)
        driver = Driver(asyncio.get_running_loop(), names)
        await _try_out(driver)
    except Exception as problem:  # whatever a changed asyncio does to us
        log.logger().warning("Requests run as asyncio's own tasks, since ours do not work here: %s.", problem)
        return None
    return Chosen(task_type=RequestTask, driver=driver)


def unless_made_by_others(loop: asyncio.AbstractEventLoop, chosen: Chosen | None) -> Chosen | None:
    """The same; None if the application has set a task factory by now, which makes requests' tasks then."""
    # A loop of somebody else's may know of none.
    factory = getattr(loop, "get_task_factory", lambda: None)()
    if chosen is not None and factory is not None:
        reason = "Requests run as tasks of the application's task factory, not of --task-impl rust: %s."
        log.logger().warning(reason, getattr(factory, "__qualname__", type(factory).__qualname__))
        return None
    return chosen


def _try_entering(names: TaskNames) -> None:
    """In an order that leaves the caller's own task the current one, whichever of the two is broken."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    refused = False
    try:
        names.enter_task(loop, task)
    except RuntimeError:
        refused = True
    _expect(refused, "a second task can be entered")
    names.leave_task(loop, task)
    _expect(asyncio.current_task() is None, "a task cannot be left")
    names.enter_task(loop, task)


def _try_yielding(names: TaskNames) -> None:
    """What any future says of itself as it is yielded, asyncio's and ours."""
    loop = asyncio.get_running_loop()
    for future in (loop.create_future(), Wait(loop)):
        _expect(not getattr(future, names.blocking), "a future is waited for though nobody awaits it")
        _expect(next(future.__await__()) is future, "a future does not yield itself")
        _expect(bool(getattr(future, names.blocking)), "a future does not say that it was awaited")
    _expect(getattr(loop.create_future(), names.loop_of_future) is loop, "a future does not know its loop")


async def _try_out(driver: Driver) -> None:
    loop = asyncio.get_running_loop()
    future, wait = loop.create_future(), Wait(loop)
    coroutine, context = _try_waiting(future, wait), contextvars.copy_context()
    task: Any = RequestTask(driver.park(coroutine, context), context=context)
    task._log_destroy_pending = False  # a failure has been told of otherwise
    await asyncio.sleep(0)
    _expect(not task.done(), "a task is done while it waits")
    _expect(task in asyncio.all_tasks(), "a task is not among all tasks")
    _expect(task._fut_waiter is future, "a task does not know what it waits for")
    _expect(task.get_coro() is coroutine, "a task does not know its coroutine")
    _expect(task.cancel("trial") and future.cancelled(), "a cancellation does not reach what is waited for")
    for _ in range(_TURNS):
        if task.done():
            break
        if task._fut_waiter is wait:
            wait.resolve()
        await asyncio.sleep(0)
    _expect(task.done(), "a task does not end")
    _expect(task.result() is task, "a task is not the current one at each step")


async def _try_waiting(future: asyncio.Future[None], wait: Wait) -> object:
    task: Any = asyncio.current_task()
    try:
        await future
    except asyncio.CancelledError as cancelled:
        _expect(cancelled.args == ("trial",), "a cancellation loses its message")
    _expect(task is asyncio.current_task(), "another task is current after a wait")
    await asyncio.sleep(0)
    task.cancel()
    _expect(task._must_cancel and task.cancelling() == 2, "a cancellation of itself is not kept")
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        _expect(task.uncancel() == 1 and task.uncancel() == 0, "a cancellation is not taken back")
    _expect(not task._must_cancel, "a cancellation is kept for ever")
    await wait
    _expect(wait.done(), "a wait is over before what it waits for")
    return asyncio.current_task()


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _FailedError(otherwise)
