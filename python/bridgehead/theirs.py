"""Which files are the application's own, though they may lie among libraries: a wheel of it does.

Not where something is (`whereabouts.py`), and not what is loaded (`load_app.py`, which tells of it here).

Invariant: what has been an application's stays that; a process has few.
"""

import os
import sys
from types import ModuleType

from bridgehead.errors import OUR_FOLDER

# Asked by the thread that looks after a loop; strings are only added.
_files: set[str] = set()


def claim(module: ModuleType | None) -> None:
    """This module and all of its top package; of a namespace, the first package or module in it."""
    parts = module.__name__.split(".") if module is not None else []
    for depth in range(len(parts)):
        # What is not in there a `__getattr__` of theirs would be asked for.
        known = getattr(sys.modules.get(".".join(parts[: depth + 1])), "__dict__", {})
        file = known.get("__file__")
        if isinstance(file, str) and not file.startswith(OUR_FOLDER):
            _files.update(f"{folder}{os.sep}" for folder in known.get("__path__") or ())
            _files.add(file)
            return


def places() -> tuple[str, ...]:
    """Files, and folders with their separator."""
    return tuple(_files)


def has(file: str) -> bool:
    """Whether it is an application's, wherever it lies."""
    return file.startswith(places())
