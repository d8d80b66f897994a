"""Several workers under test: who they are, and when they are gone.

Not a server: `Server` starts them.
"""

from __future__ import annotations

import os
import re
import select
from typing import TYPE_CHECKING

from harness.server import STARTUP_SECONDS, Server

if TYPE_CHECKING:
    from collections.abc import Iterable


def serve(*options: str, workers: int = 2, target: str = "workers_app:app", **settings: object) -> Server:
    return Server(target, "--workers", str(workers), *options, **settings)  # type: ignore[arg-type]


def wait_all(server: Server) -> None:
    server.wait_line(" workers are ready.", timeout=STARTUP_SECONDS)


def who(server: Server) -> int:
    answer = server.ask("/")
    assert answer.status == 200
    return int(answer.body)


def imported(server: Server) -> list[int]:
    """The processes that have imported the application, in their order."""
    return [int(each) for each in re.findall(r"app: imported by (\d+)", server.stderr)]


def wait_gone(pids: Iterable[int], timeout: float = 30.0) -> None:
    """Until these processes are over, whoever's children they are."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([descriptor], [], [], timeout)[0], f"{pid} goes on"
        finally:
            os.close(descriptor)
