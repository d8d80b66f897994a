"""Has the loop's thread write where it is when a signal asks: while it has the GIL it alone can see that.

CPython's `faulthandler` does the writing, into a file in memory. Not who asks, and reads that (`glimpse.rs`).

Invariant: a signal that anybody else has a use for is left alone. Elsewhere than on Linux nothing is asked.
"""

import faulthandler
import os
import signal
import sys
from dataclasses import dataclass
from functools import cache

from bridgehead import theirs
from bridgehead.slow_steps import LIBRARIES, RUN_LOOPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Glass:
    """By what to ask, and whose frames are whose by the beginnings and ends of their files; read by Rust."""

    signal: int
    descriptor: int
    libraries: tuple[str, ...]
    theirs: tuple[str, ...]
    loops: tuple[str, ...]


def glass() -> Glass | None:
    """For a loop whose application is loaded; None if nobody can be asked."""
    answers = _answers()
    if answers is None:
        return None
    number, descriptor = answers
    return Glass(
        signal=number,
        descriptor=descriptor,
        libraries=LIBRARIES,
        theirs=theirs.prefixes(),
        loops=RUN_LOOPS,
    )


@cache
def _answers() -> tuple[int, int] | None:
    """The signal that is answered from now on, and the file into which it is; once for the process."""
    if sys.platform != "linux":
        return None
    # The last ones: who takes one of these mostly counts from the first.
    free = (
        number
        for number in range(signal.SIGRTMAX, signal.SIGRTMIN, -1)
        if signal.getsignal(number) == signal.SIG_DFL
    )
    number = next(free, None)
    if number is None:
        return None
    try:
        descriptor = os.memfd_create("bridgehead-stack")
    except OSError:  # a system that has no room, or forbids it: a place is looked at later then
        return None
    faulthandler.register(number, file=descriptor, all_threads=False)
    return number, descriptor
