"""Which files `--reload` watches: from the options to folders and patterns.

Not the watching: that is Rust's (`bridgehead-watch`), which reads this.

Invariant: folders are absolute and without links, as the system names them when it tells of a change.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from bridgehead.config import Config
from bridgehead.errors import StartError
from bridgehead.target import parse_target

_INCLUDED = ("*.py",)
# Hidden ones (.git, .venv, swap files), what Python compiles, what editors leave, packages of others.
_EXCLUDED = (".*", "__pycache__", "*.py[cod]", "*~", "~*", "node_modules", "site-packages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What to watch, and how; read by Rust."""

    folders: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    left_out: tuple[str, ...]
    delay: float
    polls: bool


def watched(config: Config) -> Watched:
    """What the options say. As in uvicorn, a default that is given on the other side gives way."""
    included_folders, included = _parted(config.reload_includes)
    left_out, excluded = _parted(config.reload_excludes)
    folders = [*(config.reload_dirs or usual_folders(config)), *included_folders]
    if config.env_file is not None:
        included.append(os.path.realpath(config.env_file))
    return Watched(
        folders=tuple(dict.fromkeys(map(_existing, folders))),
        include=tuple(dict.fromkeys([each for each in _INCLUDED if each not in excluded] + included)),
        exclude=tuple(dict.fromkeys([each for each in _EXCLUDED if each not in included] + excluded)),
        left_out=tuple(map(os.path.realpath, left_out)),
        delay=config.reload_delay,
        polls=config.reload_poll,
    )


def usual_folders(config: Config) -> list[str]:
    """The current directory, and where the application is if that is elsewhere."""
    here = os.path.realpath(os.curdir)
    folders = [here]
    for each in (config.app_dir, _folder_of_file(config)):
        if each and os.path.isdir(each) and not _is_below(os.path.realpath(each), here):
            folders.append(each)
    return folders


def _parted(written: Iterable[str]) -> tuple[list[str], list[str]]:
    """Folders that are there, and patterns."""
    given = list(written)
    folders = [each for each in given if os.path.isdir(each)]
    return folders, [each for each in given if each not in folders]


def _folder_of_file(config: Config) -> str:
    target = parse_target(config.app) if isinstance(config.app, str) else None
    if target is None or not target.is_file:
        return ""
    return os.path.dirname(os.path.join(config.app_dir, target.place))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _existing(folder: str) -> str:
    if not os.path.isdir(folder):
        raise StartError(f"--reload-dir: there is no directory {folder!r}", "name a directory to watch")
    return os.path.realpath(folder)
