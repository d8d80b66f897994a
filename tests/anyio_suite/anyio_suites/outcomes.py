"""A plugin for pytest: chooses among anyio's tests, and says what became of each.

Invariant: a test that was chosen has an outcome, and one that was not has the reason in the place of it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Outcomes = dict[str, str]
# Where `.ci/anyio` has put the source archive of the anyio that is installed.
SOURCE = Path(os.environ.get("ANYIO_SOURCE", "anyio's source"))


def run(files: list[str], chosen: Chosen, names: list[str]) -> Outcomes:
    """All tests of these files, or those of these names, with the settings that anyio gives them."""
    sys.path.insert(0, str(SOURCE))
    settings = ["-c", str(SOURCE / "pyproject.toml"), "--rootdir", str(SOURCE), "-o", "timeout=0"]
    quiet = ["-q", "--no-header", "--no-summary", "-p", "no:cacheprovider", "--capture=sys"]
    # In a request, anyio is there before pytest.
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    wanted = [str(SOURCE / name) for name in names or [f"tests/{file}" for file in files]]
    code = pytest.main([*settings, *quiet, *wanted], plugins=[chosen])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest gave up: {code}")
    return chosen.outcomes


class Chosen:
    """Takes the tests of one of the loops that anyio tests with; `change` changes what a loop is made by."""

    def __init__(
        self,
        loop: str,
        *,
        synchronous: bool,
        change: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._loop, self._synchronous, self._change = loop, synchronous, change
        self.outcomes: Outcomes = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = []
        for item in items:
            if (reason := self._reason_against(item)) is None:
                kept.append(item)
            elif reason:
                self.outcomes[item.nodeid] = reason
        items[:] = kept

    def _reason_against(self, item: pytest.Item) -> str | None:
        """`None` for a test that is run; nothing for one that is another loop's."""
        parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        backend = parameters.get("anyio_backend")
        if backend is not None and loop_of(backend) != self._loop:
            return ""
        if not self._synchronous:
            if not inspect.iscoroutinefunction(getattr(item, "obj", None)):
                return "synchronous"
            if backend is None:
                return "without a loop"
        if isinstance(backend, tuple) and self._change is not None:
            options = dict(backend[1])
            self._change(options)
            parameters["anyio_backend"] = (backend[0], options)
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and hasattr(report, "wasxfail"):
            outcome = "failed as expected"
        elif report.skipped:
            outcome = f"skipped: {report.longrepr[2]}" if isinstance(report.longrepr, tuple) else "skipped"
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            outcome = f"failed: {report.when}: {crash.message if crash else report.longrepr}"[:2000]
        elif report.when == "call":
            outcome = "passed"
        else:
            return
        # What fails as it is torn down has passed before.
        if report.failed or report.nodeid not in self.outcomes:
            self.outcomes[report.nodeid] = outcome


def loop_of(backend: object) -> str:
    """By the names of anyio's own parameters, without what they have in common."""
    if backend == "asyncio":
        return "asyncio"
    if not isinstance(backend, tuple) or backend[0] != "asyncio":
        return "another library"
    factory = backend[1].get("loop_factory")
    if factory is None or factory is asyncio.new_event_loop:
        return "asyncio"
    if factory.__name__ == "eager_task_loop_factory":
        return "eager"
    return "uvloop" if factory.__module__.startswith("uvloop") else "another"
