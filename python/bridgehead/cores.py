"""How many workers `auto` is: the cores that this process may use.

Not how many the machine has: a container is often granted fewer, and a worker too many costs all of them.

Invariant: at least one, and whatever cannot be read grants everything.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridgehead.config import Config


def workers(config: "Config") -> int:
    """How many there are to be."""
    return granted() if config.workers == "auto" else int(config.workers or 1)


def granted(root: Path = Path("/")) -> int:
    """Cores, of which the last one may be part of one."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        usable = os.cpu_count() or 1
    return max(1, math.ceil(min([usable, *_quotas(root)])))


def _quotas(root: Path) -> Iterator[float]:
    """What each control group allows that this process is in; none can have more than the one above it."""
    groups = root / "sys/fs/cgroup"
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0":
                yield from _each(groups, path, _second)
            elif "cpu" in controllers.split(","):
                yield from _each(groups / "cpu", path, _first)


def _each(groups: Path, path: str, read: Callable[[Path], float]) -> Iterator[float]:
    parts = [part for part in path.split("/") if part and part != ".."]
    for depth in range(len(parts), -1, -1):
        with suppress(OSError, ValueError, ZeroDivisionError):  # `max` is no number, and no limit
            quota = read(groups.joinpath(*parts[:depth]))
            if quota > 0:
                yield quota


def _second(group: Path) -> float:
    """Of version 2."""
    quota, period = (group / "cpu.max").read_text().split()
    return float(quota) / float(period)


def _first(group: Path) -> float:
    """Of version 1."""
    quota, period = (float((group / f"cpu.cfs_{each}_us").read_text()) for each in ("quota", "period"))
    return quota / period
