"""A gate for an application's own work: so many at once, the others in turn, each for so long at most.

It is the type by which the server admits requests (`admission.rs`), on the application's loop. Not a lock
between processes: each worker has its own gates.

Invariant: whoever waits comes in turn, and a slot is given back however the work inside ends.
"""

import asyncio
import functools
import inspect
import itertools
import math
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from bridgehead._native import Gate as Slots
from bridgehead._native import NotAdmitted, QueueFull, WaitedTooLong
from bridgehead.gate_waiters import Waiters

__all__ = ["Gate", "Gauges", "NotAdmitted", "QueueFull", "WaitedTooLong", "contention", "named", "table"]

Work = TypeVar("Work", bound=Callable[..., Any])

_RETRY_AFTER = "1"  # seconds: by then whoever was inside has likely left
_MOST = 2**62  # of slots and of those who wait: any number that is meant is less
_LONGEST = 3e9  # seconds, a century: who waits for longer waits without end
_named: "weakref.WeakSet[Gate]" = weakref.WeakSet()
_made = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """How a gate stands.

    Waits are in seconds, of the last 1,024 that came in (without a wait it is 0) or that had waited and did
    not: those are as long as they had. `left` are those that were cancelled while they waited.
    """

    slots: int
    running: int
    waiting: int
    most_waiting: int
    admitted: int
    full: int
    late: int
    left: int
    p50: float
    p99: float
    longest: float


class Gate:
    """Lets `slots` tasks in at once: `async with gate:`.

    Size it to the scarcest thing behind it: the connections of a pool, the calls that a service allows.
    Who finds `queue` others waiting is turned away by `QueueFull`, who waits for longer than `patience`
    seconds (None and infinity: without end) by `WaitedTooLong`; both are a `NotAdmitted`. `named()` lists
    the gates that have a name.

    As with `asyncio.Lock`, a task that is inside and enters once more may wait for itself.
    """

    def __init__(
        self, slots: int, *, queue: int = 1000, patience: float | None = 30.0, name: str = ""
    ) -> None:
        if not 1 <= slots < _MOST:
            raise ValueError(f"a gate has a slot at least, and less than 2**62 of them: {slots}")
        if not 0 <= queue < _MOST:
            raise ValueError(f"nobody or so many may wait, and less than 2**62: {queue}")
        if patience is not None and (math.isnan(patience) or patience < 0.0):
            raise ValueError(f"patience is a time in seconds, or None for no end: {patience}")
        self.slots = slots
        self.patience = None if patience is None or patience > _LONGEST else patience
        self.name = name
        self._made = next(_made)
        self._slots = Slots(slots, queue, self.patience, name)
        self._waiters = Waiters(self._slots, self.patience)
        if name:
            _named.add(self)

    async def acquire(self) -> None:
        """Take a slot; each is given back by one `release()`."""
        if not self._slots.try_enter():
            await self._waiters.wait()

    def release(self) -> None:
        """Give a slot back. RuntimeError if nobody is inside. From any thread."""
        self._slots.leave()

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    async def admitted(self) -> AsyncIterator[None]:
        """For FastAPI: `Depends(gate.admitted)` keeps a slot for the request; without one it is a 503."""
        async with self._answering():
            yield

    def limits(self, work: Work) -> Work:
        """Decorate a coroutine function, or an asynchronous generator that yields once: a dependency.

        An object that is called as one is, is one. A plain function may run in any thread, where nobody
        can wait for a slot without holding that.

        Where Starlette is loaded, what it raises without a slot is a 503 as well.
        """
        limited: Work
        # A class is made by a call, and not what it makes.
        called = None if isinstance(work, type) else inspect.getattr_static(type(work), "__call__", None)
        if inspect.isasyncgenfunction(work) or inspect.isasyncgenfunction(called):
            limited = self._limited_dependency(work)
        elif inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(called):
            limited = self._limited_call(work)
        else:
            hint = "write `async with gate:` around what it is called from, or make it one"
            raise TypeError(f"a gate limits `async def` only, which {work!r} is not: {hint}")
        return limited

    def _limited_dependency(self, work: Any) -> Any:
        opened = asynccontextmanager(work)

        @functools.wraps(work)
        async def limited(*arguments: Any, **keywords: Any) -> AsyncIterator[Any]:
            async with self._answering(), opened(*arguments, **keywords) as value:
                yield value

        return limited

    def _limited_call(self, work: Any) -> Any:
        @functools.wraps(work)
        async def limited(*arguments: Any, **keywords: Any) -> Any:
            async with self._answering():
                return await work(*arguments, **keywords)

        return limited

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """Inside, as by `async with`; a refusal is an answer to a request, if there may be one."""
        try:
            await self.acquire()
        except NotAdmitted as refusal:
            raise _unavailable(refusal) from None
        try:
            yield
        finally:
            self.release()

    def gauges(self) -> Gauges:
        """How it stands now."""
        self._waiters.forget_closed_loops()
        running, waiting, most_waiting, (admitted, full, late, left), waits = self._slots.gauges()
        waits.sort()
        return Gauges(
            slots=self.slots,
            running=running,
            waiting=waiting,
            most_waiting=most_waiting,
            admitted=admitted,
            full=full,
            late=late,
            left=left,
            p50=_share(waits, 0.5),
            p99=_share(waits, 0.99),
            longest=waits[-1] if waits else 0.0,
        )


def named() -> dict[str, Gauges]:
    """Every gate of this process that has a name; the second that was made of one name is `name (2)`."""
    found: dict[str, Gauges] = {}
    for gate in sorted(_named, key=lambda gate: (gate.name, gate._made)):
        numbers = itertools.count(2)
        name = gate.name
        while name in found:
            name = f"{gate.name} ({next(numbers)})"
        found[name] = gate.gauges()
    return found


async def contention(
    work: Callable[[], Awaitable[object]], *, slots: Iterable[int], callers: int, entries: int
) -> list[Gauges]:
    """Have so many callers enter a gate so often in all, once for each number of slots: what they waited."""
    return [
        await _contend(Gate(each, queue=callers, patience=None), work, callers, entries) for each in slots
    ]


async def _contend(gate: Gate, work: Callable[[], Awaitable[object]], callers: int, entries: int) -> Gauges:
    left = iter(range(entries))

    async def call() -> None:
        for _ in left:
            async with gate:
                await work()

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(call())
    return gate.gauges()


def table(found: Iterable[Gauges]) -> str:
    """What `contention` found, to be read."""
    lines = [f"{'slots':>5} {'p50 wait':>10} {'p99 wait':>10} {'most waiting':>13}"]
    for each in found:
        waits = f"{each.p50 * 1000:>7.1f} ms {each.p99 * 1000:>7.1f} ms"
        lines.append(f"{each.slots:>5} {waits} {each.most_waiting:>13}")
    return "\n".join(lines)


def _share(waits: Sequence[float], share: float) -> float:
    return waits[min(int(len(waits) * share), len(waits) - 1)] if waits else 0.0


def _unavailable(refusal: NotAdmitted) -> NotAdmitted:
    """The same, of which Starlette makes a 503; an exception handler for `NotAdmitted` comes before that."""
    # Whoever has a dependency of FastAPI's has loaded Starlette; the package itself depends on nothing.
    answers = getattr(sys.modules.get("starlette.exceptions"), "HTTPException", None)
    if answers is None:
        return refusal
    kind: Any = type(refusal)
    unavailable: NotAdmitted = _kind_that_answers(kind, answers)(
        503, str(refusal), {"Retry-After": _RETRY_AFTER}
    )
    return unavailable


@functools.cache
def _kind_that_answers(kind: Any, answers: Any) -> Any:
    said = {"__module__": kind.__module__, "__str__": lambda refusal: refusal.detail}
    return type(kind.__name__, (kind, answers), said)
