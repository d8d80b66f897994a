"""Who waits for a task: for whose sake it runs, if that is a request.

Not where it is (`whereabouts.py`). It is found by the callbacks of what is waited for, so that a task costs
nothing more when it is made; a task for which nobody waits is nobody's.

Invariant: nothing is raised, whatever an application has put among the callbacks.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any

from bridgehead import whereabouts

_MOST = 200  # who is looked at; more are a graph of which any part will do
# What others have in their functions need not wait for anything.
_GATHER = ("asyncio.", "anyio.")
_ANYIOS_GROUP = ("anyio._backends._asyncio", "TaskGroup")


def scope_behind(task: "asyncio.Task[Any] | None") -> dict[str, Any]:
    """Of the request that waits for this task, through whatever tasks and groups; else empty."""
    waits: list[Any] = [task]
    known = {id(task)}
    # The list grows as it is read: the nearest come first.
    for each in waits:
        if _is(each, asyncio.Task) and (scope := whereabouts.scope_of(each)):
            return scope
        for other in _awaiters(each):
            if _is(other, asyncio.Future) and id(other) not in known and len(waits) < _MOST:
                known.add(id(other))
                waits.append(other)
    return {}


def _awaiters(future: Any) -> Iterator[Any]:
    for call, _ in getattr(future, "_callbacks", None) or ():
        for each in _held_by(call):
            if _is(each, asyncio.TaskGroup):
                yield getattr(each, "_parent_task", None)
            elif _is(each, asyncio.Queue):  # `as_completed` has one
                yield from tuple(each._getters)  # at once: the loop's thread may change them
            elif (type(each).__module__, type(each).__qualname__) == _ANYIOS_GROUP:
                yield getattr(getattr(each, "cancel_scope", None), "_host_task", None)
            else:
                yield each


def _held_by(call: Any) -> Iterator[Any]:
    """What a callback is to tell: a task's own its task, one of `gather` or `wait` what they wait for."""
    function, known = (call.func, call.args) if type(call) is partial else (call, ())
    if type(function) is not FunctionType:
        yield getattr(function, "__self__", None)
    elif (function.__module__ or "").startswith(_GATHER):
        yield from known
        for cell in function.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # it is empty yet
                continue


def _is(something: Any, kind: type[Any]) -> bool:
    """As `isinstance` says it of who pretends nothing."""
    return issubclass(type(something), kind)
