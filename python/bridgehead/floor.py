"""Which of several workers tells why none of them starts: they begin together, and fail of the same thing.

Not what is told (`errors.py`). A pipe that all of them inherit, with one byte: its reader has the floor.

Invariant: of those that fail together one speaks, and none of the others ends before that has spoken.
"""

import os
import time
from contextlib import suppress

from bridgehead.errors import EXIT_START_FAILED

_UNHEARD = 2.0  # seconds; whoever speaks has ended by then, and its parent has ended the others


class Floor:
    """The parent's side."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        for each in (self._reader, self._writer):
            os.set_blocking(each, False)
        self.give()

    def fileno(self) -> int:
        """What a worker inherits."""
        return self._reader

    def give(self) -> None:
        """To the next one that fails, whether somebody has had it or not."""
        with suppress(BlockingIOError):
            os.read(self._reader, 1)
        os.write(self._writer, b"\0")

    def close(self) -> None:
        """Nobody starts any more."""
        os.close(self._reader)
        os.close(self._writer)


def leave_to_another(descriptor: int) -> None:
    """In a worker that fails: end here, if another one speaks."""
    try:
        if os.read(descriptor, 1):
            return
    except BlockingIOError:
        time.sleep(_UNHEARD)
        raise SystemExit(EXIT_START_FAILED) from None
    except OSError:
        pass  # the application has closed it: better told twice than never
