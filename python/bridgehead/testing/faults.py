"""An upstream that is slow, wrong and broken as told, answered by Rust.

Not a stub: it answers whatever is asked, by so many bytes.

Invariant: the nth request meets the same fault in every run of the same seed.
"""

from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TypedDict, Unpack

from bridgehead._native import Upstream
from bridgehead.quantities import seconds, size


class FaultKeywords(TypedDict, total=False):
    """Those of `Faults` that are told, for type checkers."""

    latency: float | str
    jitter: float | str
    error_rate: float
    error_status: int
    reset_rate: float
    truncate_rate: float
    hang_rate: float
    body_size: int | str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What is wrong. Each rate is a share of all requests, from 0 to 1; times and sizes may have units."""

    latency: float | str = 0.0  # of each answer
    jitter: float | str = 0.0  # up to so much more, evenly
    error_rate: float = 0.0  # answered with `error_status`
    error_status: int = 500
    reset_rate: float = 0.0  # the connection is reset instead
    truncate_rate: float = 0.0  # half of the announced body, and the end
    hang_rate: float = 0.0  # no answer for as long as the client waits
    body_size: int | str = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("latency", "jitter"):
            object.__setattr__(self, name, seconds(getattr(self, name)))
        object.__setattr__(self, "body_size", size(self.body_size))
        rates = (self.error_rate, self.reset_rate, self.truncate_rate, self.hang_rate)
        # Shares such as 0.1, ten times, are a little more than 1.
        # NaN is refused as well: it is neither within nor outside.
        if not (all(rate >= 0 for rate in rates) and sum(rates) <= 1 + 1e-9):
            raise ValueError(f"the rates are shares of all requests, and together 1 at most; not {rates}")


class FaultyUpstream:
    """A running one, on a port of its own. As a context manager it is ended when it is left."""

    def __init__(self, **faults: Unpack[FaultKeywords]) -> None:
        """Start it; `faults` are those of `Faults`."""
        self.faults = Faults(**faults)
        self._native = Upstream(self.faults)  # type: ignore[arg-type] # read by `Faults`, and numbers since

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._native.port

    @property
    def url(self) -> str:
        """Its address: `http://127.0.0.1:41234`."""
        return f"http://127.0.0.1:{self.port}"

    def change(self, **faults: Unpack[FaultKeywords]) -> None:
        """Other faults from the next request on; those that are not named stay."""
        self.faults = replace(self.faults, **faults)
        self._native.change(self.faults)  # type: ignore[arg-type]

    @property
    def counts(self) -> dict[str, int]:
        """How many `requests`, `answers`, `errors`, `resets`, `truncated` and `hung` there were."""
        return self._native.counts()

    def close(self) -> None:
        """End it and its connections."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
