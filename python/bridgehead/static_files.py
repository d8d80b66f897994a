"""What `--static` comes to when a worker starts: directories that are there, and how many files may be open.

Not the options (`static_options.py`), and not the answers, which are Rust's (`bridgehead-static`).

Invariant: a directory that is not there ends the start, and is never a 404 for each of its files.
"""

import os
from dataclasses import dataclass, replace

from bridgehead.errors import StartError, did_you_mean
from bridgehead.open_files import static_files_that_fit
from bridgehead.static_options import StaticOptions, url_and_place


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A directory at a path; without one the path is the application's own."""

    url: str
    folder: str | None
    fallback: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFiles:
    """What the network answers by files; read by Rust."""

    mounts: tuple[Mount, ...]
    max_age: int | None
    limit: int | None


def wanted(options: StaticOptions) -> StaticFiles | None:
    """What is to be answered by files, if anything."""
    mounts: dict[str, Mount] = {}
    for url, place in map(url_and_place, options.static):
        if url in mounts:
            raise StartError(f"--static: {url} is given twice", "leave one of them out")
        mounts[url] = Mount(url=url, folder=_folder(place), fallback=None)
    for url, file in map(url_and_place, options.static_fallback):
        if url not in mounts or mounts[url].folder is None:
            raise StartError(
                f"--static-fallback: there is no directory at {url}",
                did_you_mean(url, mounts, otherwise=f"add --static {url}=directory"),
            )
        mounts[url] = replace(mounts[url], fallback=file)
    if not mounts:
        return None
    limit = static_files_that_fit() if options.limit_static is None else options.limit_static or None
    return StaticFiles(
        mounts=tuple(mounts.values()),
        max_age=int(options.static_max_age) or None,
        limit=limit,
    )


def _folder(place: str) -> str | None:
    if not place:
        return None
    if not os.path.isdir(place):
        raise StartError(f"--static: {place!r} is no directory", "make it, or mend the path")
    # What the application makes of its current directory does not move it.
    return os.path.abspath(place)
