"""A descriptor's callback that asyncio's loop may call while it is being called.

A handler may turn the loop by itself, as nest_asyncio does, in a step that the drain has begun. The callback
of a descriptor is one handle for good, and a handle's context cannot be entered again: such a turn would
start no request and resume none.

Invariant: on a loop whose handles are not asyncio's own, the callback is an ordinary one.
"""

import asyncio
import contextvars
import operator
from collections.abc import Callable

from bridgehead import log
from bridgehead.private_names import TABLE, MissingNameError, held_by, look_up


class _NoContext:
    """Stands where a handle has its context: each request enters its own, and the rest is ours."""

    # Code in C: there is one call for each drain.
    run = operator.call


def watch(loop: asyncio.AbstractEventLoop, descriptor: int, callback: Callable[[], object]) -> None:
    """As `loop.add_reader`."""
    if not isinstance(loop, asyncio.SelectorEventLoop):
        loop.add_reader(descriptor, callback)
        return
    try:
        look_up("context")
        handle = held_by(loop, "add_reader")(descriptor, callback)
        if not isinstance(held_by(handle, "context"), contextvars.Context):
            raise MissingNameError("a handle's context is not where it was")
    except Exception as problem:  # whatever a changed asyncio does to us
        log.logger().warning("A handler that turns the loop itself holds up the others: %s.", problem)
        loop.add_reader(descriptor, callback)
    else:
        setattr(handle, TABLE["context"][1], _NoContext)
