"""What holds a stop that is overdue, in words for an operator.

Not who asks, just before the process is ended (`control.rs`), and not the stop itself.

Invariant: nothing is waited for but Python's lock.
"""

import asyncio
import sys
import threading
from collections.abc import Iterator
from functools import partial

from bridgehead import whereabouts
from bridgehead.slow_steps import of_the_application

_NAMED = 3  # threads; more are the same mistake
_WAITS_FOR_THREADS = "(_do_shutdown)"  # what the loop's own is called: it is no culprit


def reason(loop: asyncio.AbstractEventLoop, thread: int) -> str:
    """Why the loop of this thread has not ended; nothing if that is not seen."""
    frame = sys._current_frames().get(thread)
    task = asyncio.current_task(loop)
    theirs = of_the_application(frame)
    if frame is not None and (task is not None or theirs is not None):
        who = whereabouts.name_of(task) if task is not None else "a callback"
        return f"{who} blocks the event loop, in {whereabouts.frame_in_words(theirs or frame)}"
    if left := list(_threads(thread)):
        words = ", ".join(left[:_NAMED]) + (f" and {len(left) - _NAMED} more" if len(left) > _NAMED else "")
        return f"the event loop is free, but waits for threads that do not end: {words}"
    if loop.is_closed():
        return "the event loop is over, and Python itself does not come to its end"
    return ""


def reason_of_this_thread(loop: asyncio.AbstractEventLoop) -> partial[str]:
    """To be asked by another thread."""
    return partial(reason, loop, threading.get_ident())


def _threads(but: int) -> Iterator[str]:
    """Those that an exit waits for."""
    frames = sys._current_frames()
    for each in threading.enumerate():
        frame = frames.get(each.ident or 0)
        if frame is None or each.ident == but or not _is_waited_for(each):
            continue
        yield f"{each.name!r}, in {whereabouts.frame_in_words(of_the_application(frame) or frame)}"


def _is_waited_for(thread: threading.Thread) -> bool:
    ours = thread is threading.main_thread() or isinstance(thread, threading._DummyThread)
    return not (ours or thread.daemon or _WAITS_FOR_THREADS in thread.name)
