"""How many files the process may open, and how many connections fit in there.

Not what happens when there are more (Rust's `crowd.rs` and `accept.rs`).

Invariant: connections never get all there is; the application opens files too.
"""

import resource
from contextlib import suppress

_MOST = 10_000  # connections by default: each may wait for the application, in memory
_KEPT_BACK = 64  # files for the loop, the listeners, the logs and modules that are being imported
_SHARE = 0.8  # of the others, the connections'
_MOST_STATIC = 4096  # files that clients read: each has a piece in memory
_STATIC_SHARE = 0.1  # of the others, theirs; what is left is the application's


def raise_limit() -> None:
    """Have as many as the system lets us: the usual limit is for programs that call `select()`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS has a lower bound of its own, below a hard limit that says none.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_that_fit(files: int | None = None) -> int:
    """As many as there are files for, and not more than are good for one worker."""
    return _share_of(_files() if files is None else files, _SHARE, _MOST)


def static_files_that_fit(files: int | None = None) -> int:
    """As many as there are descriptors for beside connections."""
    return _share_of(_files() if files is None else files, _STATIC_SHARE, _MOST_STATIC)


def most_files() -> int:
    """As many as a server may open, once `raise_limit` was called."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def _files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _share_of(files: int, share: float, most: int) -> int:
    if files == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, int((files - _KEPT_BACK) * share)))
