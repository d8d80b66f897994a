"""Where a process is: the stacks of its threads and of its tasks, on stderr.

Not who asks for it. What holds Python's lock is waited for: frames that are looked at without it may change
meanwhile, which would end the process.

Invariant: whatever cannot be shown is left out, and nothing is raised.
"""

import asyncio
import faulthandler
import io
import os
from contextlib import suppress

_MOST = 100  # tasks; more are rarely read
_STDERR = 2


def show(loop: asyncio.AbstractEventLoop | None) -> None:
    """Write them; for any thread."""
    with suppress(OSError, ValueError):
        faulthandler.dump_traceback(_STDERR, all_threads=True)
    if loop is None:
        return
    text = io.StringIO()
    with suppress(RuntimeError):  # they change while they are looked at
        for task in list(asyncio.all_tasks(loop))[:_MOST]:
            task.print_stack(file=text)
    with suppress(OSError):
        os.write(_STDERR, text.getvalue().encode(errors="backslashreplace"))
