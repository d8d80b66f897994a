"""The end of what an application left running on a loop of ours: cancelled, waited for, named if it goes on.

Not requests that are still in time: those have ended before, or were cancelled (`worker.py`).

Invariant: the wait ends, and whatever outlives it is said.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from bridgehead import log, whereabouts

_NAMED = 20  # of those that did not end; more of them are the same mistake
_AGAIN = 0.05  # seconds between looks for tasks that were begun by those that end

Task = asyncio.Task[Any]


def end(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Cancel every task of a loop that is not running, and name those that have not ended after so long."""
    left = loop.run_until_complete(_end_all(seconds)) if asyncio.all_tasks(loop) else set()
    if left:
        _tell(left)


async def _end_all(seconds: float) -> set[Task]:
    loop = asyncio.get_running_loop()
    deadline, cancelled, left = loop.time() + seconds, set[Task](), set[Task]()
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        # Once each: what a task does with it is its own affair, but whatever it begins is new.
        for task in left - cancelled:
            task.cancel()
        cancelled |= left
        rest = deadline - loop.time()
        if rest <= 0:
            break
        await asyncio.wait(left, timeout=min(rest, _AGAIN), return_when=asyncio.FIRST_COMPLETED)
    _tell_of_failures(loop, cancelled - left)
    return left


def _tell_of_failures(loop: asyncio.AbstractEventLoop, ended: Iterable[Task]) -> None:
    """As `asyncio.run` does: whoever keeps such a task would never hear of it."""
    for task in ended:
        if not task.cancelled() and (error := task.exception()) is not None:
            words = "A task that was cancelled at the stop failed as it ended"
            loop.call_exception_handler({"message": words, "exception": error, "task": task})


def _tell(left: Iterable[Task]) -> None:
    names = sorted(whereabouts.of(task) for task in left)
    for name in names[:_NAMED]:
        log.logger().error("Cancelled at the stop, but did not end: %s.", name)
    if len(names) > _NAMED:
        log.logger().error("Nor did %d more tasks.", len(names) - _NAMED)
    for task in left:
        # They were named; asyncio would say so once more, of each.
        with suppress(AttributeError):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
