"""Which workers have served for long enough, and are to be succeeded.

Not how long that is (`lifetime.py`), nor how they are succeeded (`rolling.py`).

Invariant: it is said once of each worker, and tried again until it is succeeded.
"""

import time
from collections.abc import Iterable, Iterator

from bridgehead import log
from bridgehead.lifetime import resident
from bridgehead.supervisor.health import LOOK
from bridgehead.supervisor.post import Post


class Recycling:
    """Of all posts."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def look(self, posts: Iterable[Post]) -> Iterator[Post]:
        """Those whose worker's time is over."""
        now = time.monotonic()
        if now - self._last < LOOK:
            return
        self._last = now
        for post in posts:
            child = post.serving
            if child is None or not child.lifetime.is_limited or not post.may_be_renewed:
                continue
            reason = child.lifetime.ended_by(
                requests=child.requests, seconds=child.served_for or 0.0, memory=resident(child.pid)
            )
            if reason is not None:
                if not child.spent:
                    child.spent = True
                    log.logger().info("Worker [%d] %s. Another takes over.", child.pid, reason)
                yield post
