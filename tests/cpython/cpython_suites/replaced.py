"""Runs synchronous tests: `python -m cpython_suites.replaced MODULE plain|ours`.

They turn a loop of their own. With `ours`, the task written in C is ours: CPython's tests look it up as
`asyncio.tasks._CTask`. Only the classes that are made of it are run. Prints the outcomes as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


def main() -> None:
    module, which = sys.argv[1:]
    tasks: Any = asyncio.tasks
    if which == "ours":
        from cpython_suites.our_task import OurTask

        tasks._CTask = OurTask
    from cpython_suites.outcomes import run

    json.dump(run(module, is_made_of_the_task), sys.stdout)


def is_made_of_the_task(kind: type) -> bool:
    """Whether the class under test is the task written in C, or derived from it."""
    tasks: Any = asyncio.tasks
    task = getattr(kind, "Task", None)
    return isinstance(task, type) and not issubclass(task, tasks._PyTask)


if __name__ == "__main__":
    main()
