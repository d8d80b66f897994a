"""`uvicorn._subprocess`: a child process that runs a target with the sockets of its parent.

Not the supervision (`supervisors`).

Invariant: the child begins as a new interpreter, and nothing of its parent's state is copied.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.context import SpawnProcess
from socket import socket

from bridgehead.compat.uvicorn.config import Config

Target = Callable[..., None]
spawn = multiprocessing.get_context("spawn")


def get_subprocess(config: Config, target: Target, sockets: list[socket]) -> SpawnProcess:
    """The process, which has not begun."""
    given = {"config": config, "target": target, "sockets": sockets, "stdin_fileno": _stdin()}
    return spawn.Process(target=subprocess_started, kwargs=given)


def subprocess_started(
    config: Config, target: Target, sockets: list[socket], stdin_fileno: int | None
) -> None:
    """What the child runs."""
    if stdin_fileno is not None:
        sys.stdin = os.fdopen(stdin_fileno)
    config.configure_logging()
    with suppress(KeyboardInterrupt):  # the parent has it too, and waits
        target(sockets=sockets)


def _stdin() -> int | None:
    """So that a debugger in the child may read from the terminal."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return None
