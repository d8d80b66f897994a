"""The task of a request when Rust drives its coroutine: what it answers when it is asked.

Not the drive (Rust's `drive.rs`), and not on its path: each method here is for those who look at a task.

Invariant: to everybody else it is the task that asyncio would have made of the same coroutine.
"""

import asyncio
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from bridgehead._native import Parked
from bridgehead.private_names import look_up

if TYPE_CHECKING:
    Task = asyncio.Task[Any]
else:
    Task = asyncio.Task


class RequestTask(Task):
    """A task whose coroutine is a `Parked`, and which answers for the coroutine in that."""

    __slots__ = ()

    @property
    def _coro(self) -> Any:
        held = look_up("coroutine").__get__(self)
        return held.coroutine if isinstance(held, Parked) else held

    @property
    def _fut_waiter(self) -> Any:
        waiter = look_up("waiter").__get__(self)
        return waiter.waiter if isinstance(waiter, Parked) else waiter

    @property
    def _must_cancel(self) -> bool:
        held = look_up("coroutine").__get__(self)
        due = isinstance(held, Parked) and held.must_cancel
        return due or bool(look_up("must_cancel").__get__(self))

    def get_coro(self) -> Any:
        """The request's coroutine, as asyncio's own has it."""
        return self._coro

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied, by the name that C has for its own."""
        raise TypeError("cannot pickle '_asyncio.Task' object")

    if sys.version_info >= (3, 13):

        def uncancel(self) -> int:
            """With the last request to cancel taken back, one that is still to be thrown goes too."""
            left = super().uncancel()
            held = look_up("coroutine").__get__(self)
            if left == 0 and isinstance(held, Parked):
                held.forget_cancel()
            return left


# As tasks and their type show themselves in logs.
RequestTask.__name__ = RequestTask.__qualname__ = "Task"
RequestTask.__module__ = "_asyncio"
