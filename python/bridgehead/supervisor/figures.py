"""What all workers of a server have counted, in memory that they share with their parent.

Not the figures: workers write those, in Rust, and a server for operators reads them there (`sheets.rs`).

Invariant: what a worker has counted is kept when it is gone; a place is given up once its process has ended.
The length of a file that others write to is not changed: it tells which program laid it out.
"""

import os

from bridgehead._native import Sheets
from bridgehead.supervisor.memory import file_without_a_name


class Figures:
    """A file without a name, as long as the sheets are; what nobody writes to takes no memory."""

    def __init__(self, descriptor: int | None = None) -> None:
        """New, or what another program in this process has left under this number."""
        self.begin_anew = descriptor is not None and os.fstat(descriptor).st_size != Sheets.SIZE
        if descriptor is not None and self.begin_anew:
            # Laid out otherwise: the workers of that program go on to count there, for nobody.
            os.close(descriptor)
            descriptor = None
        self._descriptor = new_file() if descriptor is None else descriptor
        os.set_inheritable(self._descriptor, False)
        self.sheets = Sheets(self._descriptor)

    def fileno(self) -> int:
        """What a worker inherits."""
        return self._descriptor

    def close(self) -> None:
        """Let go of the file; the memory stays with whoever has it."""
        os.close(self._descriptor)


def new_file() -> int:
    """For nobody's figures yet."""
    descriptor = file_without_a_name("bridgehead-sheets")
    os.ftruncate(descriptor, Sheets.SIZE)
    return descriptor
