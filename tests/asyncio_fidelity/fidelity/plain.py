"""Runs every case as the whole program of a loop of its own: `python -m fidelity.plain asyncio|uvloop`.

Prints the accounts as JSON. Nothing of Bridgehead is imported here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fidelity.account import account
from fidelity.registry import Case, all_cases
from fidelity.world import Plain


def main() -> None:
    loop = sys.argv[1]
    accounts = {name: run(case, loop) for name, case in all_cases().items() if loop in case.loops}
    assert "bridgehead" not in sys.modules
    json.dump(accounts, sys.stdout)


def run(case: Case, loop: str) -> dict[str, Any]:
    """What `asyncio.run` and `uvloop.run` do."""
    factory = None
    if loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(account(case.function, Plain()))


if __name__ == "__main__":
    main()
