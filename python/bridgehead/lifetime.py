"""How long one process may serve: so many requests, so long, so much memory.

Not what happens then: a successor takes over, see `supervisor/recycling.py` and `alone.py`.

Invariant: more memory once may be one large request; twice in a row it is the process.
"""

import os
import random
from collections.abc import Callable

from bridgehead.config import Config

_SHARE = 0.1  # of a limit, what chance may add if nothing is said of it
_SAMPLES = 2
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Lifetime:
    """Of one process, from its first request on."""

    def __init__(self, config: Config, draw: Callable[[], float] = random.random) -> None:
        self._requests = round(
            _stretched(config.limit_max_requests or 0, config.limit_max_requests_jitter, draw)
        )
        self._seconds = _stretched(config.worker_lifetime, config.worker_lifetime_jitter, draw)
        self._memory = config.worker_max_rss
        self._larger = 0  # samples in a row

    @property
    def requests(self) -> int | None:
        """How many there may be, once chance has added to it."""
        return self._requests or None

    @property
    def is_limited(self) -> bool:
        """Whether there is an end at all."""
        return bool(self._requests or self._seconds or self._memory)

    def ended_by(self, *, requests: int, seconds: float, memory: int) -> str | None:
        """Why it is over after so many requests and so long, with so much memory; None: it is not."""
        if self._requests and requests >= self._requests:
            return f"has had {requests} requests"
        if self._seconds and seconds >= self._seconds:
            return f"has served for {seconds:.0f} s"
        self._larger = self._larger + 1 if self._memory and memory > self._memory else 0
        if self._larger >= _SAMPLES:
            return f"takes {memory / 1024**2:.0f} MiB of memory"
        return None


def resident(process: int) -> int:
    """Bytes of memory that a process takes; 0 where the system does not say."""
    try:
        with open(f"/proc/{process}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _stretched(limit: float, jitter: float | None, draw: Callable[[], float]) -> float:
    """By chance, and never to less."""
    return limit and limit + draw() * (limit * _SHARE if jitter is None else jitter)
