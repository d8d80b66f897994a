"""The file that says which process to signal.

Not a lock: a port or a path in use is what keeps a second server away, and the file is written after that.

Invariant: a file that names another process is never removed.
"""

import os
from contextlib import suppress

from bridgehead.errors import StartError


def write(path: str | None) -> None:
    """Whole or not at all; nothing if there is to be none."""
    if path is None:
        return
    made = f"{path}.{os.getpid()}"
    try:
        with open(made, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
        os.replace(made, path)
    except OSError as problem:
        with suppress(OSError):
            os.unlink(made)
        reason = problem.strerror or str(problem)
        raise StartError(f"--pidfile {path!r} cannot be written: {reason}", "choose another place") from None


def remove(path: str | None) -> None:
    """If it is still this process's."""
    if path is None:
        return
    with suppress(OSError, ValueError):
        with open(path, encoding="ascii") as file:
            ours = int(file.read()) == os.getpid()
        if ours:
            os.unlink(path)
