"""The handlers that servers set for signals, and give back in whatever order they end.

Not what a handler does (`server.py`), and not the control thread's signals (`command.py`). The main thread's
alone.

Invariant: a server that has ended has no handler anywhere, and what stood before the first is back after the
last.
"""

import signal
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any

from bridgehead import forks
from bridgehead.loops import OwnLoop, afterwards

Handler = Callable[[int, FrameType | None], Any]


class Taken:
    """One server's handler, for the time it is in force."""

    def __init__(self, numbers: Iterable[int], handler: Handler) -> None:
        self._handler = handler
        self._before: dict[int, Any] = {}
        for number in numbers:
            # None: it was set below Python, which cannot set it again.
            self._before[number] = signal.signal(number, handler) or signal.SIG_DFL
            forks.replaces(number, handler, self._before[number])
        _in_force.append(self)

    def give_back(self) -> None:
        """What stood before is in force again, or will be when the servers that began later have ended."""
        place = _in_force.index(self)
        later = _in_force[place + 1 :]
        del _in_force[place]
        for number, before in self._before.items():
            heir = next((each for each in later if each._before.get(number) is self._handler), None)
            if heir is not None:
                heir._before[number] = before
            elif not any(number in each._before for each in later):
                signal.signal(number, before)
        forks.restores(self._handler)
        for each in later:
            forks.restores(each._handler)
            for number, before in each._before.items():
                forks.replaces(number, each._handler, before)


def raise_afterwards(caught: Sequence[int], own: OwnLoop | None) -> None:
    """For whoever stood before, the last first, once this loop is closed.

    The process may end by the first of them.
    """

    def raise_again() -> None:
        for each in reversed(caught):
            signal.raise_signal(each)

    if own is not None and any(signal.getsignal(each) is signal.SIG_DFL for each in caught):
        own.leave_threads()  # they end with the process
    afterwards(own, raise_again)


_in_force: list[Taken] = []
