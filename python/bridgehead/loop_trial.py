"""Whether asyncio's own loop and its set of tasks are what Rust takes them for: trials at the start.

Not the names (`private_names.py`), and not the tasks that requests run as (`task_trial.py`).

Invariant: what fails here is left to asyncio and told once, and nothing of the running loop has been touched.
"""

import asyncio
import sys
import weakref
from contextlib import closing
from typing import Any

from bridgehead import log
from bridgehead.private_names import LoopNames, Register, look_up, loop_names, register


class _FailedError(Exception):
    """Something came out otherwise; says what."""


class _Member:
    """What a set of weak references can hold."""


def turnable() -> LoopNames | None:
    """What asyncio's own loop is asked for while it turns the network; None: it cannot be asked."""
    try:
        with closing(asyncio.BaseEventLoop()) as loop:
            names = loop_names(loop)
            _try_loop(loop, names)
            return names
    except Exception as problem:  # whatever a changed asyncio does to us
        reason = "The network has a thread of its own, since it cannot be turned under asyncio: %s."
        log.logger().warning(reason, problem)
        return None


def tasks_register() -> Register | None:
    """The set in which asyncio keeps all tasks; None: it is left alone."""
    # From 3.12 on, a task that is over in its first step is never put there, so nothing would be gained.
    if sys.version_info >= (3, 12):
        return None
    try:
        tasks = look_up("all_tasks")
        _try_set(weakref.WeakSet())
        # Where somebody else stands in, nothing is wrong.
        plain = type(tasks) is weakref.WeakSet and "add" not in vars(tasks)
        return register(tasks) if plain else None
    except Exception as problem:  # as above
        log.logger().warning("Tasks are registered by Python code, which is slower: %s.", problem)
        return None


def _try_loop(loop: asyncio.BaseEventLoop, names: LoopNames) -> None:
    """On a loop that never runs: what is asked for follows what is done to it."""
    loop.call_soon(int)
    _expect(len(getattr(loop, names.ready)) == 1, "a callback is not where it was")
    loop.call_later(3600, int)
    timers = getattr(loop, names.scheduled)
    _expect(type(timers) is list and len(timers) == 1, "a timer is not where it was")
    for enabled in (True, False):
        loop.set_debug(enabled)
        _expect(bool(getattr(loop, names.debug)) is enabled, "the debug mode is not told")
    _expect(not getattr(loop, names.stopping), "a loop stops though it is not told to")
    loop.stop()
    _expect(bool(getattr(loop, names.stopping)), "a loop does not stop though it is told to")
    _expect(names.current_task(loop) is None, "a loop has a task though it does not run")
    if sys.version_info < (3, 12):
        _try_current_tasks(loop, names)


def _try_current_tasks(loop: asyncio.BaseEventLoop, names: LoopNames) -> None:
    tasks = look_up("current_tasks")
    tasks[loop] = current = _Member()
    try:
        known = names.current_task(loop) is current and asyncio.current_task(loop) is current
        _expect(known, "the current task is not where it was")
    finally:
        del tasks[loop]


def _try_set(members: weakref.WeakSet[Any]) -> None:
    made = register(members)
    kept, lost = _Member(), _Member()
    members.add(kept)
    members.add(lost)
    _expect(
        made.references == {weakref.ref(kept), weakref.ref(lost)}, "a task's reference is not where it was"
    )
    looking = iter(members)
    next(looking)
    _expect(len(made.iterating) == 1, "nobody knows who looks at all tasks")
    looking.close()  # type: ignore[attr-defined]
    _expect(not made.iterating, "who looked at all tasks does so for ever")
    made.pending.append(weakref.ref(lost))
    made.commit()
    _expect(
        not made.pending and made.references == {weakref.ref(kept)}, "a task that is gone is not taken out"
    )


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _FailedError(otherwise)
