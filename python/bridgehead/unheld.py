"""Writes lines to a stream that nobody may read: who writes is not held up by that.

Not which lines, nor how they look (`loggers.py`). Access lines are Rust's, which does the same.

Invariant: a write waits for a tenth of a second, and not again until somebody reads. What is lost is told.
"""

import os
import select
from collections.abc import Callable
from typing import TextIO

# A pipe that is ready takes so many bytes without waiting (POSIX's PIPE_BUF, as Linux has it).
_AT_ONCE = 4096
_PATIENCE = 100  # milliseconds: a reader that is only slow loses nothing


class Unheld:
    """One stream of the process's own: a pipe, a terminal, a socket or a file."""

    def __init__(self, stream: TextIO) -> None:
        """OSError or ValueError for what is none of the system's."""
        stream.fileno()
        self._stream = stream
        self._lost = 0
        self._is_cut = False  # in the middle of a line

    def write(self, text: str, tell: Callable[[int], str]) -> None:
        """All of it, or as much as there is room for. `tell` says in a line how many were lost before."""
        descriptor = self._stream.fileno()
        if not self._is_ready(descriptor):
            self._lost += 1
            return
        self._stream.flush()  # what others have put there comes first
        if self._lost:
            text = tell(self._lost) + text
        if self._is_cut:
            text = "\n" + text
        data = text.encode(self._stream.encoding or "utf-8", self._stream.errors or "backslashreplace")
        self._lost = 0
        left = memoryview(data)
        while left and self._is_ready(descriptor):
            try:
                left = left[os.write(descriptor, left[:_AT_ONCE]) :]
            except BlockingIOError:
                break
        self._is_cut = bool(left)
        self._lost = int(self._is_cut)

    def _is_ready(self, descriptor: int) -> bool:
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        return bool(poll.poll(0 if self._lost else _PATIENCE))
