"""What a service manager is told: ready, reloading, stopping, alive, as systemd has it (`sd_notify`).

Not when that is: `alone.py` and `supervisor/crew.py` know.

Invariant: without somebody who listens nothing is sent, and nobody who does not listen any more stops us.
"""

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress

_SOCKET = "NOTIFY_SOCKET"
_TIMES_IN = 2.0  # signs of life in the time that the manager waits for one
_VARIABLES = (_SOCKET, "WATCHDOG_USEC", "WATCHDOG_PID")


class Notices:
    """To whoever the environment names."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        place = environ.get(_SOCKET, "")
        self._place = "\0" + place[1:] if place.startswith("@") else place
        self.interval = _interval(environ) if place else None
        self._due = time.monotonic()

    def ready(self) -> None:
        """Clients are answered; also once more after a reload."""
        self._send(f"READY=1\nMAINPID={os.getpid()}")

    def reloading(self) -> None:
        """All is loaded anew, until `ready`."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The end has begun."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Called at least as often as `patience` says."""
        if self.interval is not None and time.monotonic() >= self._due:
            self._due = time.monotonic() + self.interval
            self._send("WATCHDOG=1")

    @property
    def patience(self) -> float | None:
        """Seconds until the next sign of life is due; None: nobody waits for one."""
        return None if self.interval is None else max(0.0, self._due - time.monotonic())

    def _send(self, words: str) -> None:
        if self._place:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(words.encode(), self._place)


def for_workers(environ: Mapping[str, str]) -> dict[str, str]:
    """The same, for processes that are not the one that the manager knows."""
    return {name: value for name, value in environ.items() if name not in _VARIABLES}


def _interval(environ: Mapping[str, str]) -> float | None:
    written, process = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID")
    if not written.isdecimal() or int(written) == 0 or process not in (None, "", str(os.getpid())):
        return None
    return int(written) / 1e6 / _TIMES_IN
