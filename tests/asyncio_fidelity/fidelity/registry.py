"""The cases by name: what is run, and where it cannot be.

Invariant: each case has one name, `module.function`, and is run wherever it does not say that it cannot be.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fidelity.account import Seen

Function = Callable[[Seen], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case."""

    function: Function
    # Changes what the whole loop or process has: no other case may run meanwhile.
    alone: bool
    # The loops it means something on.
    loops: frozenset[str]
    # What it sees is another thing where Rust drives the coroutine; the README says why.
    differs_in_rust: bool


CASES: dict[str, Case] = {}
BOTH = frozenset({"asyncio", "uvloop"})


def case(
    *,
    alone: bool = False,
    loops: frozenset[str] = BOTH,
    since: tuple[int, int] = (3, 11),
    differs_in_rust: bool = False,
) -> Callable[[Function], Function]:
    """Put a coroutine function on the list."""

    def register(function: Function) -> Function:
        module = function.__module__.rpartition(".")[2]
        name = f"{module}.{function.__name__}"
        assert name not in CASES, f"two cases are called {name}"
        if sys.version_info >= since:
            CASES[name] = Case(function=function, alone=alone, loops=loops, differs_in_rust=differs_in_rust)
        return function

    return register


def all_cases() -> dict[str, Case]:
    """Every case of this Python, in a fixed order."""
    package = importlib.import_module("fidelity.cases")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"fidelity.cases.{module.name}")
    return dict(sorted(CASES.items()))
