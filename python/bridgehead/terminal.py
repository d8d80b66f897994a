"""Whether SIGHUP says that the terminal was closed, as its name has it, or that all is to be loaded anew.

Not what is done about it.

Invariant: who was started by `nohup`, or without a terminal, is never told that it was closed.
"""

import os
import signal


class Terminal:
    """The one of this process, as it is when this is made."""

    def __init__(self) -> None:
        self._is_there = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and is_open()

    @property
    def is_lost(self) -> bool:
        """Whether there was one, and there is none any more."""
        return self._is_there and not is_open()


def is_open() -> bool:
    """Whether this process has one."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def is_elsewhere() -> bool:
    """Whether it is somebody else's just now, and this process is in its background."""
    try:
        number = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(number) != os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(number)
