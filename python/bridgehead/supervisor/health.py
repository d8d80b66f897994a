"""Which workers are to be replaced since nothing is heard of them.

Not how (`rolling.py`), and not who lets their clients in meanwhile: `rota.rs`.

Invariant: only time counts in which a worker could have answered, and this process could have heard it.
Who was stopped or paused blames nobody.
"""

import time
from collections.abc import Iterable, Iterator

from bridgehead import log
from bridgehead.supervisor.post import Post

LOOK = 0.5  # seconds between two looks
_LONGEST = 1.0  # what a look counts at most, however long ago the one before was


class Health:
    """Of all posts."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._last = time.monotonic()

    def look(self, posts: Iterable[Post]) -> Iterator[Post]:
        """Those whose worker has been silent for too long."""
        elapsed = time.monotonic() - self._last
        if elapsed < LOOK:
            return
        self._last += elapsed
        for post in posts:
            child = post.serving
            if child is None:
                continue
            silent = child.silent_for(min(elapsed, _LONGEST))
            if self._limit and silent >= self._limit and post.may_be_renewed:
                if not child.shown:
                    child.shown = True
                    child.show()
                    sentence = "Worker [%d] has not answered for %.3g s and is replaced. Where it is:"
                    log.logger().error(sentence, child.pid, silent)
                yield post
