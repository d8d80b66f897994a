"""Sockets that a service manager has opened for us: systemd's LISTEN_FDS, LISTEN_FDNAMES and LISTEN_PID.

Not how they are listened on: `sockets.py` does that, as with any descriptor.

Invariant: they are ours only if LISTEN_PID names this process; children are not told of them.
"""

import os
from collections.abc import Mapping, MutableMapping
from functools import cache

from bridgehead.errors import StartError

_FIRST = 3  # SD_LISTEN_FDS_START
_UNNAMED = "unknown"  # as systemd calls what has no name
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def passed(environ: Mapping[str, str], process: int) -> tuple[tuple[int, str], ...]:
    """The descriptors, each with its name."""
    if environ.get("LISTEN_PID") != str(process):
        return ()
    count = environ.get("LISTEN_FDS", "")
    if not count.isdecimal():
        return ()
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    names += [_UNNAMED] * (int(count) - len(names))
    return tuple((_FIRST + number, names[number] or _UNNAMED) for number in range(int(count)))


@cache
def sockets() -> tuple[tuple[int, str], ...]:
    """Those of this process. Asked once: afterwards nobody else is to take them for its own."""
    return take(os.environ, os.getpid())


def take(environ: MutableMapping[str, str], process: int) -> tuple[tuple[int, str], ...]:
    """The same of an environment, which tells nobody else of them afterwards."""
    found = passed(environ, process)
    for name in _VARIABLES if found else ():
        environ.pop(name, None)
    return found


def numbers(name: str) -> list[int]:
    """The descriptors of this name; there may be several."""
    found = [number for number, known in sockets() if known == name]
    if not found:
        names = ", ".join(sorted({known for _, known in sockets()}))
        hint = f"these were passed: {names}" if names else "no sockets were passed: see `systemd.socket(5)`"
        raise StartError(f"fd://{name}: no socket of this name was passed", hint)
    return found
