"""How long to wait before a worker that died is succeeded.

Not when it died: whoever asks knows that. Pure: no clock.

Invariant: the first death is followed at once; those of a crash loop by ever longer waits, up to a limit.
"""

_STEADY = 5.0  # seconds; a worker that served so long was no part of a crash loop
_FIRST = 0.5
_LONGEST = 30.0


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
