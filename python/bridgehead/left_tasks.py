"""The end of what an application left on a loop of ours: tasks are cancelled, generators closed.

Not requests that are still in time: those have ended before, or were cancelled (`worker.py`).

Invariant: the wait ends, and whatever outlives it is said.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

from bridgehead import log, whereabouts

_AGAIN = 0.05  # seconds between looks for tasks that were begun by those that end
_EXITS = (SystemExit, KeyboardInterrupt)  # what a loop lets through
_NUMBER = re.compile(r"\d+")

Task = asyncio.Task[Any]


def end(loop: asyncio.AbstractEventLoop, rest: Callable[[], float]) -> None:
    """Of a loop that is not running. What has not ended is named, after so many seconds as `rest` gives."""
    ending = _Ending(loop)
    ending.cancel_tasks(rest())
    ending.close_generators(rest())
    # Those that close them and have not ended, and what they have begun.
    ending.cancel_tasks(rest())


class _Ending:
    """What was told to end, and what was said of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._told = set[Task]()
        self._given_up = set[Task]()
        self._closes_all: asyncio.Future[None] | None = None

    def cancel_tasks(self, seconds: float) -> None:
        if self._left():
            cancelled = set[Task]()
            self._run(self._cancel_all(cancelled, seconds))
            # Not those that end in the very turn in which they are given up, but what they begin there.
            left = self._left()
            self._tell_of_failures(cancelled - left)
            _tell(each for each in left if each is not self._closes_all)
            for task in left:
                _keep_quiet(task)  # it was named; asyncio would say so once more
            self._given_up |= left

    def close_generators(self, seconds: float) -> None:
        closers = set[Task]()
        self._run(self._close_all(closers, seconds))
        overdue = {each for each in closers if not each.done()}
        if self._closes_all is None:
            closers = {
                each for each in closers if isinstance(_error_of(each), _EXITS)
            }  # the loop told of others
        self._tell_of_failures(closers - overdue)
        places = [("", whereabouts.place_of(each)) for each in overdue]
        _name("Did not close at the stop, and is cancelled: the asynchronous generator %s.", places)

    def _left(self) -> set[Task]:
        return asyncio.all_tasks(self._loop) - self._given_up

    def _run(self, main: Coroutine[Any, Any, None]) -> None:
        """To its end, whichever of the tasks means to end the process: it ends already."""
        task = self._loop.create_task(main)
        while not task.done():
            try:
                self._loop.run_until_complete(task)
            except _EXITS as error:
                # Somebody else's, such as a signal handler's, is obeyed at once.
                if all(_error_of(each) is not error for each in self._told):
                    _keep_quiet(task)
                    raise

    async def _cancel_all(self, cancelled: set[Task], seconds: float) -> None:
        """`cancelled` are those that were."""
        deadline, me = self._loop.time() + seconds, asyncio.current_task()
        while left := self._left() - {me}:
            # Once each: what a task does with it is its own affair, but whatever it begins is new.
            new = left - cancelled
            cancelled |= left
            self._told |= left
            for task in new:
                task.cancel()
            rest = deadline - self._loop.time()
            if rest <= 0:
                break
            await asyncio.wait(left, timeout=min(rest, _AGAIN), return_when=asyncio.FIRST_COMPLETED)

    async def _close_all(self, closers: set[Task], seconds: float) -> None:
        """`closers` are the tasks that the loop begins for it, one for each."""
        before = asyncio.all_tasks()
        all_of_it = asyncio.ensure_future(self._loop.shutdown_asyncgens())
        await asyncio.sleep(0)  # it begins them
        closers |= asyncio.all_tasks() - before - {all_of_it}
        self._told |= closers
        await asyncio.wait({all_of_it}, timeout=seconds)
        if all_of_it.done():
            all_of_it.result()
        elif closers:
            self._closes_all = all_of_it  # it waits for those that are named

    def _tell_of_failures(self, ended: Iterable[Task]) -> None:
        """As `asyncio.run` does: whoever keeps such a task would never hear of it."""
        for task in ended:
            error = _error_of(task)
            if isinstance(error, _EXITS):
                # It is the process that was ending, and its exit code is the stop's.
                name, place = whereabouts.name_of(task), whereabouts.raised_at(error)
                words = "Cancelled at the stop, raised %r, and the stop went on: %s."
                log.logger().warning(words, error, _in_words(name, place))
            elif error is not None:
                said = "A task that was cancelled at the stop failed as it ended"
                context = {"message": said, "exception": error, "task": task}
                self._loop.call_exception_handler(context)


def _error_of(task: Task) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


def _tell(left: Iterable[Task]) -> None:
    found = [(whereabouts.name_of(task), whereabouts.place_of(task)) for task in left]
    _name("Cancelled at the stop, but did not end: %s.", found)


def _name(words: str, found: Iterable[tuple[str, str]]) -> None:
    """Each by its name and place. Of those of one place whose names differ by numbers alone, as of tasks that
    asyncio has named, the first: they are one mistake, and may be thousands.
    """
    first, counts = dict[tuple[str, str], str](), Counter[tuple[str, str]]()
    for name, place in sorted(found):
        alike = _NUMBER.sub("0", name), place
        first.setdefault(alike, _in_words(name, place))
        counts[alike] += 1
    for alike, named in first.items():
        more = f", and {counts[alike] - 1} more of that place" if counts[alike] > 1 else ""
        log.logger().error(words, named + more)


def _in_words(name: str, place: str) -> str:
    """`the request GET /reports, in load() at shop/reports.py:31`; of a nameless one the place."""
    return f"{name}, in {place}" if name and place else name or place


def _keep_quiet(task: Task) -> None:
    with suppress(AttributeError):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
