"""`uvicorn.supervisors.watchfilesreload`: changes of which the system tells.

Invariant: it is what `ChangeReload` stands for.
"""

from pathlib import Path

from bridgehead.compat.uvicorn.config import Config
from bridgehead.compat.uvicorn.supervisors.basereload import BaseReload as BaseReload
from bridgehead.compat.uvicorn.supervisors.basereload import WatchedReload as WatchFilesReload

__all__ = ["FileFilter", "WatchFilesReload"]

_EXCLUDED = (".*", ".py[cod]", ".sw.*", "~*")


class FileFilter:
    """Whether a file is one that uvicorn would watch; for programs that watch by themselves."""

    def __init__(self, config: Config) -> None:
        given = [*config.reload_excludes]
        folders = [each for each in given if Path(each).is_dir()]
        excluded = [each for each in _EXCLUDED if each not in config.reload_includes]
        self.includes = [*{"*.py"}.difference(given), *config.reload_includes]
        self.excludes = [*excluded, *(each for each in given if each not in folders)]
        self.exclude_dirs = [Path(each) for each in folders]

    def __call__(self, path: Path) -> bool:
        """By the first pattern that it matches; a name that is written out outranks what is excluded."""
        matched = next((each for each in self.includes if path.match(each)), None)
        if matched is None or str(path).endswith(matched):
            return matched is not None
        inside = any(each in path.parents for each in self.exclude_dirs)
        return not inside and not any(path.match(each) for each in self.excludes)
