"""Runs synchronous tests: `python -m cpython_suites.replaced MODULE plain|ours`.

They turn a loop of their own. With `ours`, the task written in C is ours, or the future in the file about it:
CPython's tests look them up as `asyncio.tasks._CTask` and `asyncio.futures._CFuture`. Only the classes that
are made of them are run. Prints the outcomes as JSON; what is left out has its reason there.
"""

from __future__ import annotations

import asyncio
import json
import sys
import unittest
from typing import Any

from cpython_suites.our_future import LEFT_OUT, OurFuture
from cpython_suites.our_task import OurTask
from cpython_suites.outcomes import Outcome, Outcomes, name_of, tests_of

ABOUT_FUTURES = "test_futures"


def main() -> None:
    module, which = sys.argv[1:]
    tasks, futures = asyncio.tasks, asyncio.futures
    if which == "ours" and module == ABOUT_FUTURES:
        futures._CFuture = OurFuture  # type: ignore[attr-defined]
    elif which == "ours":
        tasks._CTask = OurTask  # type: ignore[attr-defined]
    json.dump(run(module), sys.stdout)


def run(module: str) -> Outcomes:
    about_futures = module == ABOUT_FUTURES
    tests = list(tests_of(module, is_made_of_the_future if about_futures else is_made_of_the_task))
    left_out = {name_of(test): why for test in tests if about_futures and (why := why_left_out(test))}
    result = Outcome()
    unittest.TestSuite(test for test in tests if name_of(test) not in left_out).run(result)
    return {**result.of, **{name: f"left out: {why}" for name, why in left_out.items()}}


def is_made_of_the_task(kind: type) -> bool:
    """Whether the class under test is the task written in C, or derived from it."""
    tasks: Any = asyncio.tasks
    task = getattr(kind, "Task", None)
    return isinstance(task, type) and not issubclass(task, tasks._PyTask)


def is_made_of_the_future(kind: type) -> bool:
    """Whether the class under test is the future written in C, or derived from it."""
    # Some have it in a method of theirs, and not as a class.
    return kind.__name__.startswith(("CFuture", "CSubFuture"))


def why_left_out(test: unittest.TestCase) -> str | None:
    return next((why for why, names in LEFT_OUT.items() if test._testMethodName in names), None)


if __name__ == "__main__":
    main()
