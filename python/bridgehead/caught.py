"""Signals as something to wait for beside sockets, in a process without an event loop.

Not a worker's signals: those are the control thread's, in Rust.

Invariant: on the way out everything is as it was.
"""

import signal
import socket
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self


class Caught:
    """Catches signals between `__enter__` and `__exit__`, on the main thread."""

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        self._numbers = tuple(numbers)
        self._came: list[signal.Signals] = []
        self._before: dict[signal.Signals, Any] = {}
        self._reader, self._writer = socket.socketpair()
        self._wakeup_before = -1
        for each in (self._reader, self._writer):
            each.setblocking(False)

    def __enter__(self) -> Self:
        self._wakeup_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in self._numbers:
            self._before[number] = signal.signal(number, self._note) or signal.SIG_DFL
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._reader.close()
        self._writer.close()

    def fileno(self) -> int:
        """Readable when there is something to take."""
        return self._reader.fileno()

    def take(self) -> list[signal.Signals]:
        """What came since it was last taken."""
        with suppress(BlockingIOError):
            self._reader.recv(4096)
        came, self._came = self._came, []
        return came

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - Python hands it over
        self._came.append(signal.Signals(number))
