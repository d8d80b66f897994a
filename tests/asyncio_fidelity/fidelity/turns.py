"""Calls something when everybody has had a few turns.

Instead of a timer: on a busy loop that may fire before a task has begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_TURNS = 5


def soon(function: Callable[..., object], *arguments: object, turns: int = _TURNS) -> None:
    """Call it that many turns of the loop from now."""
    loop = asyncio.get_running_loop()
    if turns:
        loop.call_soon(lambda: soon(function, *arguments, turns=turns - 1))
    else:
        function(*arguments)
