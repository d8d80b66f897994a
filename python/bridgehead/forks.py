"""What happens when the application forks: parent and child stay sane.

The child has none of our threads. It must not hold our clients and ports, and a signal to it is its own.

Invariant: between the fork and the child's own handlers no signal is lost: they are blocked meanwhile.
"""

import os
import signal
from contextlib import suppress

from bridgehead._native import forget_descriptors

_ENDING = (signal.SIGINT, signal.SIGTERM)

_registered = False
_mask: set[int] = set()


def register() -> None:
    """Look after every fork of this process from here on."""
    global _registered
    if not _registered:
        _registered = True
        os.register_at_fork(before=_block, after_in_parent=_unblock, after_in_child=_forget)


def _block() -> None:
    _mask.clear()
    _mask.update(signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING))


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask)


def _forget() -> None:
    """In the child: let go of what is the parent's."""
    forget_descriptors()
    for number in _ENDING:
        # The system's side of these is our control thread's, which the child has not got; Python's side is
        # what the application thinks is in force.
        with suppress(ValueError, TypeError):
            signal.signal(number, signal.getsignal(number) or signal.SIG_DFL)
    _unblock()
