"""How the loop of this worker fares: `snapshot()`, from the application itself.

Not who measures: Rust does (`health.rs`), into memory that outlives the worker; this reads the same.

Invariant: asking changes nothing, and costs what counting the loop's tasks does.
"""

import asyncio
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bridgehead._native import Server as Network
from bridgehead._native import Sheet
from bridgehead.admission import Gauges, named
from bridgehead.slow_steps import SlowStep as SlowStep
from bridgehead.slow_steps import SlowSteps

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_MICROSECOND = 1e-6

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
    thread looks while a step holds the loop for longer than `--slow-step`.
    """

    running: int
    queued: int
    arrived: int
    tasks: int
    loop_lag: float
    longest_step: float
    slow_steps: int
    blocked_for: float
    gil_wait: float
    longest_gil_wait: float
    executor: Executor
    slowest: tuple[SlowStep, ...]
    gates: dict[str, Gauges]


class Watched:
    """A network and its loop, as long as it serves."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sheet: Sheet) -> None:
        self.steps = SlowSteps(loop)
        self._loop = loop
        self._sheet = sheet
        self._network: Network | None = None

    def begin(self, network: Network) -> None:
        """It serves from now on."""
        self._network = network
        _watched.setdefault(self._loop, []).append(self)

    def end(self) -> None:
        """It does not any more."""
        self._network = None
        _watched.get(self._loop, []).remove(self)

    def count(self) -> tuple[int, int, int, int]:
        """What only Python knows; called by Rust, on a thread of its own."""
        executor = executor_of(self._loop)
        return tasks_of(self._loop), executor.queued, executor.threads, executor.most

    def snapshot(self) -> Snapshot:
        """How it stands now."""
        assert self._network is not None  # it is taken out of the list first
        health = self._sheet.health()
        queued, arrived = self._network.queued
        return Snapshot(
            running=self._network.running,
            queued=queued,
            arrived=arrived,
            tasks=tasks_of(self._loop),
            loop_lag=health["loop_lag"] * _MICROSECOND,
            longest_step=health["longest_step"] * _MICROSECOND,
            slow_steps=health["slow_steps"],
            blocked_for=health["blocked_for"] * _MICROSECOND,
            gil_wait=health["gil_wait"] * _MICROSECOND,
            longest_gil_wait=health["gil_wait_longest"] * _MICROSECOND,
            executor=executor_of(self._loop),
            slowest=self.steps.slowest(),
            gates=named(),
        )


def snapshot() -> Snapshot:
    """Of the server on this thread's loop; on another thread, of the one that began last.

    RuntimeError if none serves in this process.
    """
    running = asyncio._get_running_loop()
    lists = [_watched.get(running, [])] if running is not None else list(_watched.values())
    there = [each for each in lists if each]
    if not there:
        raise RuntimeError("no server of Bridgehead's serves here")
    return there[-1][-1].snapshot()


def tasks_of(loop: asyncio.AbstractEventLoop) -> int:
    """How many tasks are not done; for any thread."""
    try:
        return len(asyncio.all_tasks(loop))
    except RuntimeError:  # they change while they are looked at, again and again
        return 0


def executor_of(loop: asyncio.AbstractEventLoop) -> Executor:
    """What is known of the default executor; nothing before it was used."""
    executor: Any = getattr(loop, "_default_executor", None) or _executors.get(loop)
    try:
        return Executor(
            queued=executor._work_queue.qsize(), threads=len(executor._threads), most=executor._max_workers
        )
    except AttributeError:  # there is none, or it is somebody's own
        return Executor(queued=0, threads=0, most=0)


def show_executor(loop: asyncio.AbstractEventLoop) -> None:
    """Have a loop that hides its default executor use one that is seen. Its threads begin with its calls."""
    from concurrent.futures import ThreadPoolExecutor

    executor = _executors[loop] = ThreadPoolExecutor(thread_name_prefix="asyncio")
    loop.set_default_executor(executor)
