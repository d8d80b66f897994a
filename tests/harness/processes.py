"""What /proc says of a process that goes on meanwhile.

Invariant: a thread that has ended or a file that was closed between the listing and the look is left out.
"""

import os
from contextlib import suppress
from pathlib import Path


def open_descriptors(pid: int) -> list[str]:
    """Where the process's open files lead."""
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(each))
    return found


def of_threads(pid: int, name: str) -> dict[str, str]:
    """The file of this name of each thread, by the thread's number."""
    found = {}
    for each in Path(f"/proc/{pid}/task").iterdir():
        # The second is what reading says of a thread that ends meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            found[each.name] = (each / name).read_text().strip()
    return found
