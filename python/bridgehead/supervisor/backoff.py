"""How long to wait before a worker that died is succeeded, and when that is given up.

Not when it died: whoever asks knows that. Pure: no clock.

Invariant: the first death is followed at once; those of a crash loop by ever longer waits, up to a limit. A
server that has once been steady is never given up: what its workers lack may come back.
"""

_STEADY = 5.0  # seconds; a worker that served so long was no part of a crash loop
_FIRST = 0.5
_LONGEST = 30.0
_TRIES = 5  # of one post, in a row


class Backoff:
    """Of one post."""

    def __init__(self) -> None:
        self.failures = 0  # deaths in a row that were early

    def after(self, served: float | None) -> float:
        """Seconds to wait after a worker that served so long; None: it never did."""
        if served is not None and served >= _STEADY:
            self.failures = 0
            return 0.0
        self.failures += 1
        return 0.0 if self.failures == 1 else min(_FIRST * 2.0 ** min(self.failures - 2, 16), _LONGEST)


class Prospects:
    """Of all posts together."""

    def __init__(self, *, steady: bool = False) -> None:
        self._steady = steady  # whether any worker ever was

    def saw(self, served: float | None) -> None:
        """A worker has ended that served so long; None: it never did."""
        self._steady |= served is not None and served >= _STEADY

    def are_gone(self, failures: int, *, serving: bool) -> bool:
        """Whether a post with so many early deaths in a row is the server's end; not while others serve."""
        return failures >= _TRIES and not serving and not self._steady
