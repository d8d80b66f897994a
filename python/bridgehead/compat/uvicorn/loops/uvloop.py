"""`uvicorn.loops.uvloop`: the loop that `--loop uvloop` names.

Invariant: called, the factory gives a function that makes a new loop.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable

from bridgehead.loops import plain_loop


def uvloop_loop_factory(use_subprocess: bool = False) -> Callable[[], AbstractEventLoop]:  # noqa: ARG001 - uvicorn's
    """What makes the loop."""
    return lambda: plain_loop("uvloop")
