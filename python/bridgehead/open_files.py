"""How many files the process may open, and how many connections fit in there.

Not what happens when there are more (Rust's `crowd.rs` and `accept.rs`).

Invariant: connections never get all there is; the application opens files too.
"""

import resource
from contextlib import suppress

_MOST = 10_000  # connections by default: each may wait for the application, in memory
_KEPT_BACK = 64  # files for the loop, the listeners, the logs and modules that are being imported
_SHARE = 0.8  # of the others, the connections'


def raise_limit() -> None:
    """Have as many as the system lets us: the usual limit is for programs that call `select()`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS has a lower bound of its own, below a hard limit that says none.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_that_fit() -> int:
    """As many as there are files for, and not more than are good for one worker."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST
    return max(1, min(_MOST, int((soft - _KEPT_BACK) * _SHARE)))
