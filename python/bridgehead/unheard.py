"""Signals that are a parent's affair, in its children: whoever tells a whole group, or a worker, ends nobody.

Not SIGINT and SIGTERM, which end whoever gets them (`command.py`).

Invariant: from its first instruction on a child is ended by none of these; what the application starts or
forks hears them as it would anywhere.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_CALLED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# Not by a handler: the system tells these to who reads from a terminal in the background, again and again
# while it is called for that. Who ignores them has an error from its read.
_IGNORED = (signal.SIGTTIN, signal.SIGTTOU)

SIGNALS = frozenset({*_CALLED, *_IGNORED})


def nothing(number: int, frame: FrameType | None) -> None:
    """A handler rather than SIG_IGN, which every program that the application starts would inherit."""


@contextmanager
def held_back() -> Iterator[None]:
    """A child that is started meanwhile has them blocked, and Ctrl+C too, until it can end quietly."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS | {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_to_the_parent(*, job_control: bool) -> None:
    """In a child that was started so. `job_control`: a terminal may stop it, and its parent with it."""
    for number in _CALLED:
        signal.signal(number, nothing)
    if not job_control:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
    os.register_at_fork(after_in_child=_hear)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _hear() -> None:
    for number in _CALLED:
        if signal.getsignal(number) is nothing:
            signal.signal(number, signal.SIG_DFL)
    for number in _IGNORED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
