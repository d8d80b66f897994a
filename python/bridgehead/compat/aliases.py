"""Modules under a second name: whoever imports `uvicorn.config` gets the module that has it here.

Not which modules there are: that is what the folder holds.

Invariant: a module exists once, whichever name it is imported by, and keeps its own.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType


def named(name: str, real: str) -> ModuleType:
    """The module, with what is loaded below it known by the second name as well.

    Else Python would load that once more by this name, and set it in the module: over the command `main`,
    which has the name of the module that it is from.
    """
    module = importlib.import_module(real)
    for each in [each for each in sys.modules if each.startswith(f"{real}.")]:
        sys.modules.setdefault(name + each.removeprefix(real), sys.modules[each])
    return module


class Aliases(MetaPathFinder):
    """Finds a package and all below it under another name."""

    def __init__(self, name: str, real: str) -> None:
        self._name = name
        self._real = real

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - Python hands them over
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """What Python asks of each import."""
        if fullname != self._name and not fullname.startswith(f"{self._name}."):
            return None
        real = importlib.util.find_spec(self._real + fullname.removeprefix(self._name))
        if real is None:
            return None
        spec = ModuleSpec(fullname, _Alias(fullname, real), origin=real.origin)
        spec.submodule_search_locations = real.submodule_search_locations
        return spec


class _Alias(InspectLoader):
    """Gives the module that is there already."""

    def __init__(self, name: str, real: ModuleSpec) -> None:
        self._name = name
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 - Python hands it over
        """The module itself."""
        return named(self._name, self._real.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to be run; the module keeps what it says of itself."""
        module.__spec__ = self._real

    def get_code(self, fullname: str) -> CodeType | None:  # noqa: ARG002 - for `python -m uvicorn`
        """As the module's own loader has it."""
        loader = self._real.loader
        return loader.get_code(self._real.name) if isinstance(loader, InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:  # noqa: ARG002 - for tracebacks
        """As the module's own loader has it."""
        loader = self._real.loader
        return loader.get_source(self._real.name) if isinstance(loader, InspectLoader) else None

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002 - Python hands it over
        """As the module itself is."""
        return self._real.submodule_search_locations is not None
