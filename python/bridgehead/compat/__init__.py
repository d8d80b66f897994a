"""Bridgehead under uvicorn's name, for programs that import it: `bridgehead.compat.install()`.

Not uvicorn's options and defaults (`uvicorn_options.py`, `uvicorn_defaults.py`). The modules that programs
import are in `uvicorn/`.

Invariant: after `install()`, `import uvicorn` in this process and in those it starts gives what is in
`bridgehead.compat.uvicorn`, whether uvicorn itself is installed or not.
"""

import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

from bridgehead.compat.aliases import Aliases

NAME = "uvicorn"

# Holds a package of that name which installs this one: Python looks there before its own folders.
_INHERITED = str(Path(__file__).parent / "inherited")
_PATH = "PYTHONPATH"
_TOO_LATE = (
    "uvicorn itself was imported before compat.install(): what holds a name of it goes on with uvicorn, and "
    "what is imported from here on is Bridgehead's; call install() before the first import of uvicorn"
)


def install() -> None:
    """Put Bridgehead in uvicorn's place, here and in processes that are started from here.

    Called before anything imports uvicorn: what has been imported from the other one keeps it, and is warned
    of.
    """
    if not any(isinstance(finder, Aliases) for finder in sys.meta_path):
        if _is_uvicorns(sys.modules.get(NAME)):
            warnings.warn(_TOO_LATE, RuntimeWarning, stacklevel=2)
        sys.meta_path.insert(0, Aliases(NAME, f"{__name__}.{NAME}"))
        for name in [each for each in sys.modules if each == NAME or each.startswith(f"{NAME}.")]:
            del sys.modules[name]
    if _INHERITED not in sys.path:
        sys.path.insert(1, _INHERITED)  # behind the program's own folder; our workers are given the path
    before = os.environ.get(_PATH, "")
    if _INHERITED not in before.split(os.pathsep):
        os.environ[_PATH] = os.pathsep.join([_INHERITED, before] if before else [_INHERITED])


def is_installed() -> bool:
    """Whether `import uvicorn` gives Bridgehead here, or would."""
    return _INHERITED in sys.path


def _is_uvicorns(module: ModuleType | None) -> bool:
    """Whether it is not the one that a process which was started from ours finds."""
    return module is not None and _INHERITED not in (getattr(module, "__file__", None) or "")
