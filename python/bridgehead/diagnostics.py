"""How the loop of this worker fares: `snapshot()`, from the application itself.

Not who measures: Rust does (`health.rs`), into memory that outlives the worker; this reads the same.

Invariant: asking changes nothing, and costs what counting the loop's tasks does.
"""

import asyncio
import os
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bridgehead._native import Server as Network
from bridgehead._native import Sheet, ShownGates
from bridgehead.admission import Gauges, named
from bridgehead.slow_steps import SlowStep as SlowStep
from bridgehead.slow_steps import SlowSteps

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_MICROSECOND = 1e-6
_MILLISECOND = 1e-3

# By their loops; the executors only where a loop does not show its own.
_watched: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[Watched]]" = weakref.WeakKeyDictionary()
_executors: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor]" = (
    weakref.WeakKeyDictionary()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """The threads behind `asyncio.to_thread`: calls that wait for one, how many there are, and may be."""

    queued: int
    threads: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """How it stands now. Times are in seconds; those of the loop are sampled while it has something to do.

    `queued` are requests that wait for `--limit-concurrency`, `arrived` those that wait for the loop. `tasks`
    are all of the loop that are not done, the server's own few as well. `blocked_for` is zero unless another
    thread looks while a step holds the loop for longer than `--slow-step`. `longest_request` is that of the
    longest step, if it was slow and for one. `executor` is None if it is one of which nothing is known.
    """

    running: int
    queued: int
    arrived: int
    tasks: int
    loop_lag: float
    longest_step: float
    longest_request: str
    slow_steps: int
    blocked_for: float
    gil_wait: float
    longest_gil_wait: float
    executor: Executor | None
    slowest: tuple[SlowStep, ...]
    gates: dict[str, Gauges]


class Watched:
    """A server's loop, and its network as long as that serves."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sheet: Sheet, *, among_others: bool) -> None:
        self.steps = SlowSteps(loop, among_others=among_others)
        self.sheet = sheet
        self._loop = loop
        self._network: Network | None = None
        self._gates: ShownGates | None = None

    def begin(self) -> None:
        """The application may ask from here on, while it starts as well."""
        _watched.setdefault(self._loop, []).append(self)
        self._gates = self.sheet.show_gates()

    def serve(self, network: Network) -> None:
        """There are requests from now on."""
        self._network = network

    def rest(self) -> None:
        """There are none any more."""
        self._network = None

    def end(self) -> None:
        """Nobody is told any more."""
        _watched.get(self._loop, []).remove(self)
        if self._gates is not None:
            self._gates.close()

    def count(self) -> tuple[int, tuple[int, int, int] | None]:
        """What only Python knows; called by Rust, on a thread of its own."""
        executor = executor_of(self._loop)
        known = None if executor is None else (executor.queued, executor.threads, executor.most)
        return tasks_of(self._loop), known

    def snapshot(self) -> Snapshot:
        """How it stands now."""
        # Of a step that is over the census tells a moment later.
        just_over = self._network.just_over if self._network is not None else None
        health, slowest = self.sheet.health(), self.steps.slowest(just_over)
        longest_step = max(health["longest_step"] * _MICROSECOND, just_over[0] if just_over else 0.0)
        queued, arrived = self._network.queued if self._network is not None else (0, 0)
        return Snapshot(
            running=self._network.running if self._network is not None else 0,
            queued=queued,
            arrived=arrived,
            tasks=tasks_of(self._loop),
            loop_lag=health["loop_lag"] * _MICROSECOND,
            longest_step=longest_step,
            longest_request=_request_of(slowest, longest_step),
            slow_steps=health["slow_steps"],
            blocked_for=health["blocked_for"] * _MICROSECOND,
            gil_wait=health["gil_wait"] * _MICROSECOND,
            longest_gil_wait=health["gil_wait_longest"] * _MICROSECOND,
            executor=executor_of(self._loop),
            slowest=slowest,
            gates=named(),
        )


def snapshot() -> Snapshot:
    """Of the server on this thread's loop; on another thread, of the one that began last.

    It may be asked from the application's startup until the end of its shutdown. RuntimeError if there is no
    server in this process.
    """
    running = asyncio._get_running_loop()
    lists = [_watched.get(running, [])] if running is not None else list(_watched.values())
    there = [each for each in lists if each]
    if not there:
        raise RuntimeError("no server of Bridgehead's serves here")
    return there[-1][-1].snapshot()


def _request_of(slowest: tuple[SlowStep, ...], longest_step: float) -> str:
    """For which the longest step was: none of what was shorter, while that is all that is known of it."""
    return slowest[0].request if slowest and slowest[0].longest + _MILLISECOND > longest_step else ""


def tasks_of(loop: asyncio.AbstractEventLoop) -> int:
    """How many tasks are not done; for any thread."""
    try:
        return len(asyncio.all_tasks(loop))
    except RuntimeError:  # they change while they are looked at, again and again
        return 0


def executor_of(loop: asyncio.AbstractEventLoop) -> Executor | None:
    """What is known of the default executor; none has threads before its first call. None if it is hidden."""
    try:
        executor: Any = loop._default_executor  # type: ignore[attr-defined]
    except AttributeError:
        if loop not in _executors:
            return None
        executor = _executors[loop]
    if executor is None:
        return Executor(queued=0, threads=0, most=_usual_most())
    try:
        return Executor(
            queued=executor._work_queue.qsize(), threads=len(executor._threads), most=executor._max_workers
        )
    except AttributeError:  # it is of somebody's own kind
        return None


def _usual_most() -> int:
    """Of one that asyncio makes at the first call: as many as `ThreadPoolExecutor` has by itself."""
    count = getattr(os, "process_cpu_count", os.cpu_count)  # the former from 3.13 on
    return min(32, (count() or 1) + 4)


def show_executor(loop: asyncio.AbstractEventLoop) -> None:
    """Have a loop that hides its default executor use one that is seen, as will be those that it is given.

    Its threads begin with its calls.
    """
    from concurrent.futures import ThreadPoolExecutor

    hidden, itself = type(loop).set_default_executor, weakref.ref(loop)

    def set_default_executor(executor: Any) -> None:
        if (loop := itself()) is not None:
            hidden(loop, executor)
            _executors[loop] = executor

    try:
        loop.set_default_executor = set_default_executor  # type: ignore[method-assign]
    except AttributeError:  # it has no room for it, and what it will be given will not be seen
        return
    set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
