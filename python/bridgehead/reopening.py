"""SIGUSR1: files that logging writes are opened again, as they were renamed by whoever rotates them.

Not standard output and error, which whoever started the server has opened.

Invariant: a record goes into the old file or into the new one, and none is lost.
"""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from bridgehead import unheard
from bridgehead.taken_signals import Taken


def reopen() -> None:
    """Every file of every handler that there is."""
    # Those of loggers would leave out handlers behind others, as of a queue.
    for reference in list(logging._handlerList):  # type: ignore[attr-defined]
        handler = reference()
        if isinstance(handler, logging.FileHandler):
            with handler.lock or threading.RLock():
                if handler.stream is not None:
                    handler.stream.close()
                    handler.stream = handler._open()


@contextmanager
def on_signal(then: Callable[[], object], stays: Callable[[], bool] = bool) -> Iterator[None]:
    """`then()` when the signal comes, unless somebody else hears it; afterwards too, if it `stays`.

    For the main thread.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGUSR1) not in (signal.SIG_DFL, unheard.nothing):
        yield
        return

    def heard(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python hands it over
        then()

    taken = Taken([signal.SIGUSR1], heard)
    try:
        yield
    finally:
        if not stays():
            taken.give_back()
