"""Modules of a package as its attributes, imported when they are asked for.

Not what is in them. uvicorn imports most of its own at once, which few programs need.

Invariant: a name that is no module of the package's is an `AttributeError`, as in any module.
"""

import importlib
from collections.abc import Callable
from types import ModuleType


def modules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """The `__getattr__` of a package: `import uvicorn` and `uvicorn.logging`."""

    def found(name: str) -> ModuleType:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    return found
