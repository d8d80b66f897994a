"""Learns of a handler that the application sets for a signal of ours as that happens; and what they raise.

All of Python's ways to set one meet in `_signal.signal`: `signal.signal`, from wherever it was imported, and
`add_signal_handler` of every loop. Not what sets one below Python: the control thread looks for that.

Invariant: a signal that comes while a handler is being set is not the handler's alone.
"""

import asyncio
import importlib
import os
import selectors
import signal
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from traceback import walk_tb
from typing import Any

from bridgehead.errors import OUR_FOLDER

# The module behind `signal`, whose functions look there each time. No stub describes it.
_signal: Any = importlib.import_module("_signal")
_set: Callable[[int, Any], Any] = _signal.signal
_pipe: tuple[int, ...] = ()
# Whoever turns a loop, and who polls for it.
_OF_LOOPS = (OUR_FOLDER, os.path.dirname(asyncio.__file__), selectors.__file__, "uvloop/")


def watch(numbers: Collection[int], changed: Callable[[], None], came: Callable[[], None]) -> None:
    """From here on `changed()` is called when a handler for one of these signals was set.

    `came()` is called as well if such a signal came to the handler before that.
    """
    global _pipe
    reader, writer = _pipe = os.pipe()
    for each in _pipe:
        os.set_blocking(each, False)

    def set_and_tell(number: int, handler: Any, /) -> Any:
        if number not in numbers or threading.current_thread() is not threading.main_thread():
            return _set(number, handler)
        # The system hands a signal to this thread, if it may: then its byte is in the pipe before we go on.
        # Another thread that takes it may be held up on its way there. One that nobody is called for waits.
        called = callable(handler) and handler is not signal.default_int_handler
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, () if called else numbers)
        usual = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

        def settle() -> None:
            changed()
            _wake_by(usual)
            if not _pass_on(reader, usual).isdisjoint(numbers):
                came()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        try:
            return _set(number, handler)
        finally:
            try:
                settle()
            except BaseException:  # the handler's own: it is called between any two lines of ours
                settle()
                raise

    _signal.signal = set_and_tell


def forget() -> None:
    """In a forked child: whoever sets a handler is on its own."""
    global _pipe
    _signal.signal = _set
    for each in _pipe:
        os.close(each)
    _pipe = ()


def has_raised(error: BaseException) -> bool:
    """Whether it comes out of a signal handler: what else a loop calls leaves no exception to it."""
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    return any(not file.startswith(_OF_LOOPS) for file in files)


def _wake_by(usual: int) -> None:
    try:
        signal.set_wakeup_fd(usual, warn_on_full_buffer=False)
    except OSError:  # it is closed: a loop takes its handlers away last of all
        signal.set_wakeup_fd(-1)


def _pass_on(reader: int, usual: int) -> set[int]:
    """The signals that came; whoever is woken by them still is."""
    came = b""
    with suppress(BlockingIOError):
        came = os.read(reader, 4096)
    if came and usual != -1:
        with suppress(OSError):
            os.write(usual, came)
    return set(came)
