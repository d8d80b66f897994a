"""`uvicorn.supervisors.statreload`: changes noticed by the times of files.

Invariant: the files looked at are those of `iter_py_files`, which may be replaced.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from socket import socket

from bridgehead.compat.uvicorn.config import Config
from bridgehead.compat.uvicorn.config import logger as logger
from bridgehead.compat.uvicorn.supervisors.basereload import BaseReload


class StatReload(BaseReload):
    """Looks at every file between two pauses."""

    def __init__(
        self,
        config: Config,
        target: Callable[..., None] | list[socket] | None = None,
        sockets: list[socket] | None = None,
    ) -> None:
        super().__init__(config, target, sockets)
        self.reloader_name = "StatReload"
        self.mtimes: dict[Path, float] = {}

    def should_restart(self) -> list[Path] | None:
        """The first file that is newer than it was."""
        self.pause()
        for file in self.iter_py_files():
            with suppress(OSError):
                changed = file.stat().st_mtime
                if changed > self.mtimes.setdefault(file, changed):
                    return [file]
        return None

    def restart(self) -> None:
        """Begin to look anew."""
        self.mtimes = {}
        super().restart()

    def iter_py_files(self) -> Iterator[Path]:
        """The files."""
        for folder in self.config.reload_dirs or ["."]:
            for path in Path(folder).rglob("*.py"):
                yield path.resolve()
