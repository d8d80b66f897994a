"""Runs tests as anyio does: `python -m anyio_suites.plain asyncio|eager|uvloop asyncio|ours FILES [TEST…]`.

With `ours`, every task of the loops that the tests are run on is our task, driven by Rust. `FILES` are in one
word, with commas. Prints the outcomes as JSON in the last line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from anyio_suites.outcomes import Chosen, run


def main() -> None:
    loop, which, files, *names = sys.argv[1:]
    chosen = Chosen(loop, synchronous=True, change=make_tasks_ours if which == "ours" else None)
    outcomes = run(files.split(","), chosen, names)
    print()
    print(json.dumps(outcomes))


def make_tasks_ours(options: dict[str, Any]) -> None:
    new_loop: Callable[[], asyncio.AbstractEventLoop] = options.get("loop_factory", asyncio.new_event_loop)

    def new_loop_with_our_tasks() -> asyncio.AbstractEventLoop:
        from cpython_suites.our_task import OurTask

        loop = new_loop()
        if loop.get_task_factory() is None:
            loop.set_task_factory(lambda loop, coro, **keywords: OurTask(coro, loop=loop, **keywords))
        else:
            # asyncio's own, which anyio knows by its code.
            loop.set_task_factory(asyncio.create_eager_task_factory(OurTask))  # type: ignore[attr-defined]
        return loop

    options["loop_factory"] = new_loop_with_our_tasks


if __name__ == "__main__":
    main()
