"""Runs tests as unittest does, and says what became of each.

Invariant: a test that was found has an outcome, be it one of a whole class or module that would not begin.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterator

Outcomes = dict[str, str]


class Outcome(unittest.TestResult):
    """Each test's name, and what became of it."""

    def __init__(self) -> None:
        super().__init__()
        self.of: Outcomes = {}

    def _say(self, test: unittest.TestCase, outcome: str) -> None:
        # A failed subtest decides, whatever is said of the whole afterwards.
        self.of.setdefault(name_of(test), outcome)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._say(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        self._say(test, f"failed: {describe(err)}")

    def addError(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        self._say(test, f"failed: {describe(err)}")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._say(test, f"skipped: {reason}")

    def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802, ARG002
        self._say(test, "failed as expected")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._say(test, "passed against expectation")

    def addSubTest(self, test: unittest.TestCase, subtest: object, err: object) -> None:  # noqa: N802, ARG002
        if err is not None:
            self._say(test, f"failed: {describe(err)}")


def describe(err: object) -> str:
    """The exception, in a line."""
    assert isinstance(err, tuple)
    return f"{err[0].__name__}: {err[1]}"[:500]


def name_of(test: unittest.TestCase) -> str:
    """`Class.method`."""
    return test.id().partition(".test_asyncio.")[2].partition(".")[2] or test.id()


def tests_of(module: str, wanted: Callable[[type], bool]) -> Iterator[unittest.TestCase]:
    """Those of the classes that are wanted, one by one."""
    suites = [unittest.defaultTestLoader.loadTestsFromName(f"test.test_asyncio.{module}")]
    while suites:
        for each in suites.pop():
            if isinstance(each, unittest.TestSuite):
                suites.append(each)
            elif wanted(type(each)):
                yield each


def run(module: str, wanted: Callable[[type], bool]) -> Outcomes:
    """All of them."""
    result = Outcome()
    unittest.TestSuite(tests_of(module, wanted)).run(result)
    return result.of
