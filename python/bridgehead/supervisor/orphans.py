"""Processes that nobody waits for: as process 1 of a container the parent gets those of its workers.

Not workers: each is waited for by whoever started it.

Invariant: a worker's end is never taken from it.
"""

import os
from collections.abc import Container


def reap(workers: Container[int]) -> int:
    """Take those that have ended off the system's list; how many."""
    count = 0
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except (ChildProcessError, AttributeError):  # nobody is left; or the system has no such call
            return count
        if ended is None or ended.si_pid in workers:
            return count
        os.waitpid(ended.si_pid, 0)
        count += 1
