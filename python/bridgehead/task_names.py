"""The private names of asyncio's that our own stepper relies on: the one table.

Not what they are used for (`request_task.py`, Rust's `driver.rs`), and not whether they still mean what they
did (`task_trial.py`).

Invariant: a name that is gone is found to be gone here, at start, and nowhere else.
"""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# What is looked up where. `asyncio.Task` has a `_coro` and so on in C and in Python alike.
TABLE = {
    "enter_task": ("asyncio.tasks", "_enter_task"),
    "leave_task": ("asyncio.tasks", "_leave_task"),
    "coroutine": ("asyncio.tasks.Task", "_coro"),
    "waiter": ("asyncio.tasks.Task", "_fut_waiter"),
    "must_cancel": ("asyncio.tasks.Task", "_must_cancel"),
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


class MissingNameError(Exception):
    """A name is not there; says which."""


@functools.cache
def look_up(key: str) -> Any:
    """What the table's name stands for."""
    place, name = TABLE[key]
    found: Any = asyncio
    for part in [*place.split(".")[1:], name]:
        found = getattr(found, part, None)
    if found is None:
        raise MissingNameError(f"{place} has no {name}")
    return found


def task_names() -> TaskNames:
    """All of them, or `MissingNameError`."""
    for key in TABLE:
        look_up(key)
    return TaskNames(
        enter_task=look_up("enter_task"),
        leave_task=look_up("leave_task"),
        current_task=asyncio.current_task,
        future=asyncio.Future,
        task=asyncio.Task,
        set_result=asyncio.Future.set_result,
        cancel=asyncio.Future.cancel,
    )
