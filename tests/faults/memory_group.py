"""A group of the kernel's whose processes have so much memory together, and are killed for more.

Not a test. Where none can be made, which takes root and a system that lets it, `made` gives nothing.
Invariant: nothing of a group is left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
# Its folder, what it may take, and where the kernel counts whom it has killed: of version 1 and 2.
VERSIONS = (
    (ROOT / "memory", "memory.limit_in_bytes", "memory.oom_control"),
    (ROOT, "memory.max", "memory.events"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGroup:
    """One that is there."""

    folder: Path
    events: str

    def join(self) -> None:
        """This process, and whatever it starts from now on."""
        (self.folder / "cgroup.procs").write_text("0")

    @property
    def killed(self) -> int:
        """How many processes the kernel has killed for want of memory."""
        lines = (line.split() for line in (self.folder / self.events).read_text().splitlines())
        return next(int(value) for name, value in lines if name == "oom_kill")


@contextmanager
def made(limit: int) -> Iterator[MemoryGroup | None]:
    """With so many bytes; nothing where there cannot be one."""
    group = next(filter(None, (_tried(limit, *version) for version in VERSIONS)), None)
    try:
        yield group
    finally:
        if group is not None:
            group.folder.rmdir()


def _tried(limit: int, parent: Path, most: str, events: str) -> MemoryGroup | None:
    folder = parent / f"bridgehead-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        return None
    try:
        (folder / most).write_text(str(limit))
        group = MemoryGroup(folder=folder, events=events)
        _ = group.killed
    except (OSError, StopIteration):
        with suppress(OSError):
            folder.rmdir()
        return None
    return group
