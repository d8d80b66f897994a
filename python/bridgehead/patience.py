"""A stop's time, and how it is divided.

Not the waiting: `server.py`, `worker.py`, `lifespan.py` and `loops.py` do that, in this order.

Invariant: the parts are the whole, which is what `--timeout-graceful-shutdown` says.
"""

from dataclasses import dataclass

from bridgehead.config import Config

_CANCELLING = 2.0  # seconds for `finally` blocks, once requests are cancelled
_CLOSING = 0.25  # of that time, the share of whoever waits in `send()` once the connections are closed
_SHARE = 0.7  # of a short stop, what requests get at least
_LEAST = 1.0  # seconds for a stop, however short it is to be: all but requests have it then
_MARGIN = 3.0  # seconds after which a stop that should be over is ended from outside the loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds for requests first, then for cancelling them, then for the lifespan.

    Who has less to do leaves the rest to the lifespan, which never gets more than its own option says.
    """

    requests: float
    cancelling: float
    lifespan: float

    @classmethod
    def of(cls, config: Config) -> "Patience":
        """25 s are 18, 2 and 5; a short time is mostly the requests', and the others share what is left."""
        given, lifespan = config.timeout_graceful_shutdown, config.timeout_lifespan_shutdown
        kept = _CANCELLING + lifespan
        requests = max(given - kept, given * _SHARE)
        share = min((max(given, _LEAST) - requests) / kept, 1.0)
        return cls(requests=requests, cancelling=_CANCELLING * share, lifespan=lifespan * share)

    @classmethod
    def short_for_requests(cls, config: Config) -> "Patience":
        """The time given is the requests' alone, and they get their share of it."""
        requests = config.timeout_graceful_shutdown * _SHARE
        return cls(requests=requests, cancelling=_CANCELLING, lifespan=config.timeout_lifespan_shutdown)

    @property
    def whole(self) -> float:
        """All of it."""
        return self.requests + self.cancelling + self.lifespan

    @property
    def closing(self) -> float:
        """The end of the cancelling, when connections are closed."""
        return self.cancelling * _CLOSING

    @property
    def longest(self) -> float:
        """After this the loop must be held by something."""
        return self.whole + _MARGIN
