"""Runs asynchronous tests as unittest does: `python -m cpython_suites.plain asyncio|uvloop MODULE [TEST…]`.

Prints the outcomes as JSON, with the synchronous tests of the same classes marked.
"""

from __future__ import annotations

import asyncio
import json
import sys
import unittest
import warnings

from cpython_suites.inside import is_asynchronous
from cpython_suites.outcomes import Outcome, Outcomes, name_of, tests_of


def main() -> None:
    loop, module, *names = sys.argv[1:]
    json.dump(run(loop, module, names), sys.stdout)


def run(loop: str, module: str, names: list[str]) -> Outcomes:
    tests = [
        test
        for test in tests_of(module, lambda kind: issubclass(kind, unittest.IsolatedAsyncioTestCase))
        if not names or name_of(test) in names
    ]
    if loop == "uvloop":
        import uvloop

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    result = Outcome()
    unittest.TestSuite(test for test in tests if is_asynchronous(test)).run(result)
    synchronous = {name_of(test): "synchronous" for test in tests if not is_asynchronous(test)}
    return {**result.of, **synchronous}


if __name__ == "__main__":
    main()
