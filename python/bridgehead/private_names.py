"""The private names of asyncio's that Rust relies on: the one table.

Not what they are used for (`request_task.py`, `reentrant.py`, Rust's `driver.rs`, `turner.rs`,
`all_tasks.rs`), and not whether they still mean what they did (`task_trial.py`, `loop_trial.py`).

Invariant: a name that is gone is found to be gone here, at start, and nowhere else.
"""

import asyncio
import functools
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# What is looked up where. `asyncio.Task` has a `_coro` and so on in C and in Python alike. They are the same
# from 3.11 to 3.14, but for the set of all tasks and the current ones, which are relied on in 3.11 alone.
TABLE = {
    # Rust's drive, its tasks, and what it asks of whatever is awaited.
    "enter_task": ("asyncio.tasks", "_enter_task"),
    "leave_task": ("asyncio.tasks", "_leave_task"),
    "coroutine": ("asyncio.tasks.Task", "_coro"),
    "waiter": ("asyncio.tasks.Task", "_fut_waiter"),
    "must_cancel": ("asyncio.tasks.Task", "_must_cancel"),
    "blocking": ("asyncio.Future", "_asyncio_future_blocking"),
    "loop_of_future": ("asyncio.Future", "_loop"),
    # asyncio's own loop, where its selector turns the network. A loop has them once it is made.
    "ready": ("asyncio.BaseEventLoop()", "_ready"),
    "scheduled": ("asyncio.BaseEventLoop()", "_scheduled"),
    "debug": ("asyncio.BaseEventLoop()", "_debug"),
    "stopping": ("asyncio.BaseEventLoop()", "_stopping"),
    # Where its network has a thread: the handle of the descriptor by which it is woken (`reentrant.py`).
    "add_reader": ("asyncio.SelectorEventLoop", "_add_reader"),
    "context": ("asyncio.Handle", "_context"),
    # By loop, whose step it is: `asyncio.current_task` is Python's own code in 3.11.
    "current_tasks": ("asyncio.tasks", "_current_tasks"),
    # The set in which asyncio keeps all tasks.
    "all_tasks": ("asyncio.tasks", "_all_tasks"),
    "references": ("weakref.WeakSet()", "data"),
    "pending_removals": ("weakref.WeakSet()", "_pending_removals"),
    "iterating": ("weakref.WeakSet()", "_iterating"),
    "commit_removals": ("weakref.WeakSet()", "_commit_removals"),
}

_MISSING = object()
_PLACES: dict[str, Callable[[], Any]] = {
    "asyncio.tasks": lambda: asyncio.tasks,
    "asyncio.tasks.Task": lambda: asyncio.tasks.Task,
    "asyncio.Future": lambda: asyncio.Future,
    "asyncio.Handle": lambda: asyncio.Handle,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNames:
    """What a task's own code uses; read by Rust."""

    enter_task: Callable[..., None]
    leave_task: Callable[..., None]
    current_task: Callable[..., Any]
    future: type[asyncio.Future[Any]]
    task: type[asyncio.Task[Any]]
    set_result: Callable[..., None]
    cancel: Callable[..., bool]
    blocking: str
    loop_of_future: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNames:
    """What a loop is asked for by whoever turns the network in its poll; read by Rust."""

    ready: str
    scheduled: str
    debug: str
    stopping: str
    current_task: Callable[[asyncio.AbstractEventLoop], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """A set of tasks, and what it is made of; read by Rust."""

    attributes: dict[str, Any]
    references: set[Any]
    pending: list[Any]
    iterating: set[Any]
    commit: Callable[[], None]


class MissingNameError(Exception):
    """A name is not there; says which."""


@functools.cache
def look_up(key: str) -> Any:
    """What the table's name stands for, where there is one for all."""
    return held_by(_PLACES[TABLE[key][0]](), key)


def held_by(holder: object, key: str) -> Any:
    """What this one has under the table's name, or `MissingNameError`."""
    place, name = TABLE[key]
    found = getattr(holder, name, _MISSING)
    if found is _MISSING:
        raise MissingNameError(f"{place} has no {name}")
    return found


def task_names() -> TaskNames:
    """All of a task's, or `MissingNameError`."""
    for key in ("coroutine", "waiter", "must_cancel", "blocking", "loop_of_future"):
        look_up(key)
    return TaskNames(
        enter_task=look_up("enter_task"),
        leave_task=look_up("leave_task"),
        current_task=asyncio.current_task,
        future=asyncio.Future,
        task=asyncio.Task,
        set_result=asyncio.Future.set_result,
        cancel=asyncio.Future.cancel,
        blocking=TABLE["blocking"][1],
        loop_of_future=TABLE["loop_of_future"][1],
    )


def loop_names(loop: asyncio.BaseEventLoop) -> LoopNames:
    """All of a loop's, or `MissingNameError`."""
    for key in ("ready", "scheduled", "debug", "stopping"):
        held_by(loop, key)
    return LoopNames(
        ready=TABLE["ready"][1],
        scheduled=TABLE["scheduled"][1],
        debug=TABLE["debug"][1],
        stopping=TABLE["stopping"][1],
        current_task=look_up("current_tasks").get if sys.version_info < (3, 12) else asyncio.current_task,
    )


def register(tasks: weakref.WeakSet[Any]) -> Register:
    """What this set is made of, or `MissingNameError`."""
    return Register(
        attributes=vars(tasks),
        references=held_by(tasks, "references"),
        pending=held_by(tasks, "pending_removals"),
        iterating=held_by(tasks, "iterating"),
        commit=held_by(tasks, "commit_removals"),
    )
