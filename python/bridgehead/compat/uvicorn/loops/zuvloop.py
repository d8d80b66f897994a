"""`uvicorn.loops.zuvloop`: the loop that `--loop zuvloop` names.

Invariant: called, the factory gives a function that makes a new loop.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable

from bridgehead.loop_name import read
from bridgehead.loops import plain_loop


def zuvloop_loop_factory(use_subprocess: bool = False) -> Callable[[], AbstractEventLoop]:  # noqa: ARG001 - uvicorn's
    """What makes the loop; zuvloop has to be installed."""
    return lambda: plain_loop(read("zuvloop"))
