"""What a case saw, in a form that two processes can compare.

Invariant: an account holds no address, no counter and no time: two runs of one case give equal ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fidelity.world import World

# What differs between two runs of one program: addresses, the numbers of tasks.
CHANGING = ((re.compile(r"0x[0-9a-fA-F]+"), "0x…"), (re.compile(r"\bTask-\d+"), "Task-N"))
DEEPEST = 8


class Seen:
    """Takes down what a case sees, event by event; `world` is what differs around it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events: list[Any] = []

    def __call__(self, *event: object) -> None:
        self.events.append([picture(each) for each in event])


async def account(case: Callable[[Seen], Awaitable[None]], world: World) -> dict[str, Any]:
    """Run the case right here, in the running task."""
    seen = Seen(world)
    try:
        end = ["returned", picture(await case(seen))]  # type: ignore[func-returns-value]
    except BaseException as error:  # of every kind: it is what is looked at
        end = ["raised", picture(error)]
    return {"events": seen.events, "end": end}


def picture(value: object, depth: int = 0) -> Any:
    """`value` as JSON that says its type."""
    if depth > DEEPEST:
        return "…"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, BaseException):
        return picture_of_exception(value, depth)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(picture(each, depth + 1) for each in value)]
    if isinstance(value, dict):
        return ["dict", *([picture(key), picture(each, depth + 1)] for key, each in value.items())]
    if isinstance(value, (set, frozenset)):
        return ["set", *sorted(repr(picture(each, depth + 1)) for each in value)]
    return ["repr", scrubbed(repr(value))]


def scrubbed(text: str) -> str:
    """Without what changes from run to run."""
    for pattern, instead in CHANGING:
        text = pattern.sub(instead, text)
    return text


def picture_of_exception(error: BaseException, depth: int) -> dict[str, Any]:
    """Type, arguments, notes, relatives, and the functions it came through."""
    facts: dict[str, Any] = {
        "exception": picture(type(error)),
        "args": [picture(each, depth + 1) for each in error.args],
        "message": scrubbed(str(error)),
        "through": functions_of(error),
    }
    if notes := getattr(error, "__notes__", None):
        facts["notes"] = picture(notes)
    if error.__suppress_context__:
        facts["suppresses its context"] = True
    for name, relative in (("cause", error.__cause__), ("context", error.__context__)):
        if relative is not None:
            facts[name] = picture(relative, depth + 1)
    if isinstance(error, BaseExceptionGroup):
        facts["exceptions"] = [picture(each, depth + 1) for each in error.exceptions]
    return facts


def functions_of(error: BaseException) -> list[str]:
    """The names of the frames of its traceback, from where it was caught."""
    names = []
    trace = error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return names
