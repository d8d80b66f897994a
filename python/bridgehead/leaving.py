"""The end of a process of ours that serves nobody and has said why: soon, whatever is left in it.

Not the end of one that has served: `command.py` waits for that one's threads, and a second signal ends it.

Invariant: `leave` ends the process, unless the reader of its last lines does not read.
"""

import logging
import os
import sys
import threading
import time
from contextlib import suppress
from typing import NoReturn

_GRACE = 0.5  # seconds for what the application has for an end: files to remove, processes, `atexit`


def leave(code: int) -> NoReturn:
    """As `sys.exit`, but a thread that does not end and an `atexit` that blocks hold it no longer than that.

    Python's own end comes first, since it removes temporary folders and ends multiprocessing's daemons.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the application may have put anything there
            stream.flush()
    threading.Thread(target=_end, args=(code,), name="bridgehead-end", daemon=True).start()
    with suppress(Exception):
        logging.shutdown()  # `atexit` would do it, which may not be reached
    sys.exit(code)


def _end(code: int) -> None:
    time.sleep(_GRACE)
    os._exit(code)
