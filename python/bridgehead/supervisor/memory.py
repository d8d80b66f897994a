"""The memory that workers share with their parent, and whose place on it is whose.

Not what is written there: workers do that, in Rust (`board.rs`).

Invariant: a place has one process at a time, and is blank when that comes.
"""

import os
import sys
import tempfile

from bridgehead._native import Board


class Memory:
    """A file without a name, as long as the board is."""

    def __init__(self, descriptor: int | None = None) -> None:
        """New, or what another program in this process has left under this number."""
        self._descriptor = file_without_a_name("bridgehead-board") if descriptor is None else descriptor
        os.set_inheritable(self._descriptor, False)
        os.ftruncate(self._descriptor, Board.SIZE)
        self.board = Board(self._descriptor)
        self._taken: set[int] = set()

    def fileno(self) -> int:
        """What a worker inherits."""
        return self._descriptor

    def take_place(self, theirs: int | None = None) -> int:
        """One that nobody has; or this one, of a process that has been there for a while."""
        if theirs is not None:
            self._taken.add(theirs)
            return theirs
        place = next(number for number in range(len(self._taken) + 1) if number not in self._taken)
        self._taken.add(place)
        self.board.clear(place)
        return place

    def leave_place(self, place: int) -> None:
        """It may be another's."""
        self._taken.discard(place)

    def close(self) -> None:
        """Let go of the file; the memory stays with whoever has it."""
        os.close(self._descriptor)


def file_without_a_name(name: str) -> int:
    """Memory by a descriptor; the name is for who looks at the process from outside."""
    if sys.platform == "linux":
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
