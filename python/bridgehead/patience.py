"""A stop's time, and how it is divided.

Not the waiting: `server.py`, `worker.py`, `lifespan.py` and `loops.py` do that, in this order.

Invariant: the parts are the whole, which is what `--timeout-graceful-shutdown` says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bridgehead.config import Config

_KUBERNETES = "KUBERNETES_SERVICE_HOST"  # what it tells each of its containers
_HEARSAY = 5.0  # seconds until all there have heard that this one gets no clients any more
_LAST_CALL = 5.0  # seconds in which a client that keeps a connection is told with an answer to come again
_LONGEST_DELAY = 0.5  # of a stop: the rest is for requests, and those who come after them
_CANCELLING = 2.0  # seconds for `finally` blocks, once requests are cancelled
_CLOSING = 0.25  # of that time, the share of whoever waits in `send()` once the connections are closed
_SHARE = 0.7  # of a short stop, what requests get at least
LEFT_TASKS = 1.0  # seconds for tasks that the application left running
_LEFT_SHARE = 0.1  # what they get at least of what is left when the lifespan's turn comes
_LEAST = 1.0  # seconds for a stop, however short it is to be: all but requests have it then
_MARGIN = 3.0  # seconds after which a stop that should be over is ended from outside the loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds of serving on first, then for requests to end, for cancelling them, and for the lifespan.

    Who has less to do leaves the rest to the lifespan, which never gets more than its own option says.
    """

    delay: float
    requests: float
    cancelling: float
    lifespan: float
    lets_in: bool = True
    """Whether new clients are served during the delay."""

    @classmethod
    def of(cls, config: Config, environ: Mapping[str, str]) -> "Patience":
        """25 s are 18, 2 and 5; a short time is mostly the requests', and the others share what is left.

        A delay comes out of the requests' time, and is half of the whole at most.
        """
        return cls._delayed(config, _delay(config, environ))

    @classmethod
    def of_retiring(cls, config: Config) -> "Patience":
        """Another process lets clients in already. Those that are here are served until they have heard."""
        return replace(cls._delayed(config, _LAST_CALL), lets_in=False)

    @classmethod
    def _delayed(cls, config: Config, asked: float) -> "Patience":
        whole, lifespan = config.timeout_graceful_shutdown, config.timeout_lifespan_shutdown
        kept = _CANCELLING + lifespan
        served = max(whole - kept, whole * _SHARE)
        delay = min(asked, longest_delay(config))
        share = min((max(whole, _LEAST) - served) / kept, 1.0)
        cancelling, lifespan = _CANCELLING * share, lifespan * share
        return cls(delay=delay, requests=served - delay, cancelling=cancelling, lifespan=lifespan)

    @classmethod
    def short_for_requests(cls, config: Config) -> "Patience":
        """The time given is the requests' alone, and they get their share of it. Nobody serves on."""
        requests, lifespan = config.timeout_graceful_shutdown * _SHARE, config.timeout_lifespan_shutdown
        return cls(delay=0.0, requests=requests, cancelling=_CANCELLING, lifespan=lifespan)

    @property
    def for_requests(self) -> float:
        """All of it that comes before the lifespan's."""
        return self.delay + self.requests + self.cancelling

    @property
    def whole(self) -> float:
        """All of it."""
        return self.for_requests + self.lifespan

    @property
    def closing(self) -> float:
        """The end of the cancelling, when connections are closed."""
        return self.cancelling * _CLOSING

    @property
    def longest(self) -> float:
        """After this the loop must be held by something."""
        return self.whole + _MARGIN


def for_left_tasks(rest: float) -> float:
    """Of these seconds, what a lifespan that hangs may not take from those who come after it."""
    return min(max(rest, 0.0) * _LEFT_SHARE, LEFT_TASKS)


def longest_delay(config: Config) -> float:
    """Whatever is asked for, those who came meanwhile have their time too."""
    return config.timeout_graceful_shutdown * _LONGEST_DELAY


def _delay(config: Config, environ: Mapping[str, str]) -> float:
    if config.drain_delay is not None:
        return config.drain_delay
    return _HEARSAY if environ.get(_KUBERNETES) else 0.0
