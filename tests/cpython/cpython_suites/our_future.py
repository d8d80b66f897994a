"""What `receive()` and `send()` wait for, as futures that CPython's tests can make and give a result.

Not how requests have theirs: the drain resolves those, and they carry nothing. Waiting, callbacks, cancelling
and the states are Rust's; the result that a state stands for is kept here.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

from bridgehead._native import Wait

# Tests of what ours has not, or that have nothing of ours in them, and why they are not run.
LEFT_OUT = {
    "nothing of ours is in it": (
        "test_generic_alias",
        "test_wrap_future",
        "test_wrap_future_without_loop",
        "test_wrap_future_use_running_loop",
        "test_wrap_future_use_global_loop",
        "test_wrap_future_cancel",
        "test_wrap_future_cancel2",
    ),
    "ours are made by Rust, for a loop, and always whole": (
        "test_constructor_without_loop",
        "test_constructor_use_running_loop",
        "test_constructor_use_global_loop",
        "test_constructor_positional",
        "test_uninitialized",
        "test_inherit_without_calling_super_init",
    ),
    "ours never have an exception, be it one to be fetched or refused": (
        "test_log_traceback",
        "test_tb_logger_abandoned",
        "test_tb_logger_not_called_after_cancel",
        "test_tb_logger_result_unretrieved",
        "test_tb_logger_result_retrieved",
        "test_tb_logger_exception_unretrieved",
        "test_tb_logger_exception_retrieved",
        "test_tb_logger_exception_result_retrieved",
        "test_future_exception_never_retrieved",
        "test_future_exception_never_retrieved_debug",
        "test_stop_iteration_exception",
        "test_stop_iteration_subclass_exception",
    ),
    "ours show themselves as any object does, and do not know where they were made": (
        "test_future_repr",
        "test_future_source_traceback",
    ),
    "nobody can change the message of ours": ("test_future_cancel_message_setter",),
    "who goes on before ours is resolved waits again": ("test_iter",),
    "ours are their own iterators, without a generator's methods": (
        "test_future_stop_iteration_args",
        "test_future_iter_throw",
        "test_future_iter_get_referents_segfault",
    ),
}


class OurFuture(Wait):
    """Resolved by Rust, as from within a task."""

    _value: Any = None
    _error: BaseException | None = None

    def __new__(cls, *, loop: asyncio.AbstractEventLoop) -> Self:
        return super().__new__(cls, loop)

    def set_result(self, value: Any) -> None:
        self._finish(value, None)

    def set_exception(self, error: Any) -> None:
        error = error() if isinstance(error, type) else error
        if isinstance(error, StopIteration):
            raise TypeError("StopIteration is odd in generators and cannot be raised into a Future")
        self._finish(None, error)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        if self.done():
            raise asyncio.InvalidStateError("invalid state")
        self._value, self._error = value, error
        self.resolve()

    def result(self) -> Any:
        super().result()
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self) -> Any:
        super().exception()
        return self._error

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except StopIteration:
            raise StopIteration(self.result()) from None
