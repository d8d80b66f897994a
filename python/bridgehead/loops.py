"""The event loop of a server that is not given one: which it is, how it runs, how it is closed.

Not what runs on it (`server.py`).

Invariant: a loop that is made here is closed here, and what was left running on it is ended before.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from bridgehead import left_tasks, loop_name, own_handlers
from bridgehead.config import Config
from bridgehead.diagnostics import show_executor
from bridgehead.errors import StartError
from bridgehead.patience import LEFT_TASKS

if TYPE_CHECKING:
    from bridgehead.selector import FusedSelector

T = TypeVar("T")

_CAN_FUSE = sys.platform == "linux"  # epoll, and what /proc tells of it
_LAST_MOMENT = 0.05  # seconds for tasks that were left running, when the stop's time is over


class OwnLoop:
    """A loop that a configuration asks for, and its selector if the network is turned by that."""

    def __init__(self, config: Config) -> None:
        if config.runtime == "fused" and not _CAN_FUSE:
            raise StartError("the fused runtime needs Linux", "use --runtime threaded")
        self.fused = _CAN_FUSE and config.runtime != "threaded"
        self.selector: FusedSelector | None = None
        # A loop of somebody else's kind is not known to turn a network.
        self.fused = self.fused and isinstance(config.loop, str) and config.loop in loop_name.OURS
        loop = _named(config.loop, config.app_dir)
        if loop is None and self.fused:
            self.selector = _new_selector()
            loop = asyncio.SelectorEventLoop(self.selector)
        self.loop = loop or asyncio.new_event_loop()
        if config.loop_debug:
            self.loop.set_debug(True)
        if not hasattr(self.loop, "_default_executor"):
            show_executor(self.loop)
        self._end: float | None = None
        self._waits_for_threads = True
        self._afterwards: list[Callable[[], None]] = []

    def ends_by(self, end: float) -> None:
        """By the loop's clock."""
        self._end = end

    def run(self, main: Coroutine[Any, Any, T], stop: Callable[[], None] | None = None) -> T:
        """Run it to its end, and close the loop. `stop` asks it to end, if the loop is left before."""
        try:
            return self._run_and_close(main, stop)
        finally:
            for step in self._afterwards:
                step()

    def afterwards(self, step: Callable[[], None]) -> None:
        """When the loop is closed, and nothing is left on it. Steps come in order, however it was left."""
        self._afterwards.append(step)

    def leave_threads(self) -> None:
        """What runs in the loop's executor is not waited for."""
        self._waits_for_threads = False

    def _rest(self) -> float:
        """Seconds for what was left running."""
        left = LEFT_TASKS if self._end is None else self._end - self.loop.time()
        return min(max(left, _LAST_MOMENT), LEFT_TASKS)

    def _run_and_close(self, main: Coroutine[Any, Any, T], stop: Callable[[], None] | None) -> T:
        try:
            asyncio.set_event_loop(self.loop)
            return self._run(main, stop)
        except StartError:
            self.leave_threads()  # why there is no start is said when the loop is closed
            raise
        finally:
            _close(self.loop, self._rest, threads=self._waits_for_threads)

    def _run(self, main: Coroutine[Any, Any, T], stop: Callable[[], None] | None) -> T:
        task = self.loop.create_task(main)
        try:
            return self._run_on(task)
        except (SystemExit, KeyboardInterrupt):
            # Of a signal handler or a task of the application's. It is obeyed when all has ended in order; a
            # second one at once.
            if stop is None or task.done():
                raise
            stop()
            self._run_on(task)
            raise

    def _run_on(self, task: "asyncio.Task[T]") -> T:
        """To the end, though signal handlers raise in the loop: uvloop says so, asyncio's is left by that."""
        while True:
            try:
                return self.loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                if task.done() or not own_handlers.has_raised(error):
                    raise
                # Said by the loop: another handler may raise here as well.
                said = {"message": "A signal handler raised while the loop ran", "exception": error}
                self.loop.call_soon(self.loop.call_exception_handler, said)


def afterwards(own: OwnLoop | None, step: Callable[[], None]) -> None:
    """When this loop is closed; now, where the loop is somebody else's."""
    if own is None:
        step()
    else:
        own.afterwards(step)


def _new_selector() -> "FusedSelector":
    # Not before: other systems have no epoll.
    from bridgehead.selector import FusedSelector

    return FusedSelector()


def plain_loop(wanted: str | loop_name.Factory, app_dir: str = "") -> asyncio.AbstractEventLoop:
    """A loop for somebody else's use, by its name."""
    return _named(wanted, app_dir) or asyncio.new_event_loop()


def _named(wanted: str | loop_name.Factory, app_dir: str) -> asyncio.AbstractEventLoop | None:
    """The loop of this name, unless asyncio's own is meant."""
    if isinstance(wanted, str) and wanted in loop_name.OF_THE_POLICY:
        return None
    if isinstance(wanted, str) and wanted in loop_name.OURS:
        return _uvloop(wanted)
    return loop_name.made_by(wanted, app_dir)


def _uvloop(wanted: str) -> asyncio.AbstractEventLoop | None:
    """A loop of uvloop's, if it is there; it has to be if it is asked for."""
    try:
        import uvloop
    except ImportError:
        if wanted == "uvloop":
            hint = "try `pip install uvloop`, or --loop auto"
            raise StartError("uvloop is not installed", hint) from None
        return None
    return uvloop.new_event_loop()


def _close(loop: asyncio.AbstractEventLoop, rest: Callable[[], float], *, threads: bool) -> None:
    """End what the application left running, as `asyncio.run` does, and wait `rest` at most for each kind.

    `threads`: wait for those of its executor, however long.
    """
    try:
        loop.set_task_factory(None)  # The application has ended; its factory may refuse what ends the loop.
        left_tasks.end(loop, rest)
        if threads:
            loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def a_loop_runs() -> bool:
    """Whether one runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
