"""A rolling reload: which posts are still to have a new worker, and which one is getting it.

Not how a worker is succeeded (`post.py`).

Invariant: one post at a time, and the first successor that does not come up ends it: whoever serves then
serves on.
"""

from collections.abc import Iterable

from bridgehead import log
from bridgehead.supervisor.hired import Start
from bridgehead.supervisor.post import Post, Renewal

COMPLETE, FAILED = "complete", "failed"


class Rolling:
    """Of all posts."""

    def __init__(self) -> None:
        self._left: dict[Post, Start] = {}  # and why, in their order
        self._current: Post | None = None
        self._reloads = False  # whether all have been asked for
        self.outcome: str | None = None  # of the last time that all were
        self._again = False  # whether it was asked for since the current one began, which may be too old

    def begin(self, posts: Iterable[Post]) -> None:
        """All of these, also those that have just had one: what is to be loaded may have changed since."""
        self._left = dict.fromkeys(posts, "reload")
        self._reloads = True
        self._again = self._current is not None
        log.logger().info("Reloading: each worker is replaced once its successor is ready.")

    def add(self, post: Post, why: Start) -> None:
        """This one, for itself."""
        if post is not self._current:
            self._left.setdefault(post, why)

    def forget(self, post: Post) -> None:
        """It is to have nobody any more."""
        self._left.pop(post, None)
        if self._current is post:
            self._current = None

    @property
    def is_underway(self) -> bool:
        """Whether there is more to come of a reload."""
        return self._reloads

    def go_on(self, post: Post) -> None:
        """Another program has begun a reload, and this post is left."""
        self._reloads = True
        if post.coming is None:
            self._left = {post: "reload"}
        else:
            self._current = post
            post.renewal = Renewal.UNDERWAY

    def step(self) -> bool:
        """See how far it has come, and go on. Whether a reload has just ended, well or not."""
        ended = False
        if self._current is not None:
            if self._current.renewal is Renewal.UNDERWAY:
                return False
            if self._current.renewal is Renewal.FAILED and not self._again:
                self._left.clear()
                ended = self._reloads
                if self._reloads:
                    log.logger().error("The reload has failed: the new worker did not start. Old ones stay.")
                    self.outcome = FAILED
                self._reloads = False
            elif not self._left and self._reloads:
                self._reloads, ended = False, True
                self.outcome = COMPLETE
                log.logger().info("The reload is complete.")
            self._current, self._again = None, False
        # One that starts by itself is replaced when it has: it may have loaded what was there before.
        due = next(iter(self._left), None)
        if due is not None and due.coming is None:
            self._current = due
            due.renew(self._left.pop(due))
        return ended
