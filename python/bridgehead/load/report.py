"""What a run came to, as Python and JSON have it.

Not how it is shown (`text.py`, `page.py`) or judged.

Invariant: times are in seconds, and `Report.from_json(report.to_json())` is the same report.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from bridgehead.errors import StartError

if TYPE_CHECKING:
    from bridgehead.load.objective import Latencies


class _FromJson:
    """Dataclasses that are made of what JSON holds; keys of later versions are left alone."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Of a JSON object."""
        names = {each.name for each in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in values.items() if name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(_FromJson):
    """How long something took."""

    count: int
    mean: float
    stdev: float
    min: float
    p50: float
    p75: float
    p90: float
    p95: float
    p99: float
    p999: float
    p9999: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(_FromJson):
    """A second of a run; in a long one, several."""

    at: float
    seconds: float
    answers: int
    errors: int
    bytes: int
    p50: float
    p90: float
    p99: float
    max: float

    @property
    def rps(self) -> float:
        """Answers that were no errors, a second."""
        return self.answers / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is. `elapsed` is None during the warm-up."""

    elapsed: float | None
    requests: int
    errors: int
    in_flight: int
    latest: Row | None

    @classmethod
    def from_native(cls, values: Mapping[str, Any]) -> Self:
        """Of what Rust says."""
        latest = values["latest"]
        return cls(**{**values, "latest": None if latest is None else Row.from_json(latest)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion(_FromJson):
    """What one scenario came to."""

    name: str
    requests: int
    errors: int
    errors_by_kind: Mapping[str, int]
    statuses: Mapping[str, int]
    latency: Latency

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Of a JSON object."""
        # Two-argument `super()` does not work in a dataclass with slots.
        known = {each.name: values[each.name] for each in fields(cls)}
        return cls(**{**known, "latency": Latency.from_json(values["latency"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run came to."""

    target: str
    started: str  # ISO 8601, UTC
    settings: Mapping[str, Any]
    seconds: float  # measured
    requests: int  # answers and errors
    errors: int
    errors_by_kind: Mapping[str, int]
    first_errors: Mapping[str, str]  # what was said of the first of each kind
    statuses: Mapping[str, int]
    rps: float  # answers that are no errors, a second
    bytes: int
    latency: Latency  # of answers that are no errors
    connect: Latency
    lag: Latency  # how late the generator itself made requests of a rate due
    unfinished: int  # given up when it was stopped
    unsent: int  # due by the rate, and never begun
    interrupted: bool
    cpu: float  # seconds of a core that the generator used
    dropped: int = 0  # due in the warm-up, and not begun by its end
    scenarios: Sequence[Portion] = field(default_factory=tuple)
    curve: Sequence[tuple[float, float]] = ()  # (quantile, latency)
    timeline: Sequence[Row] = ()

    @property
    def p50(self) -> float:
        """Half of the answers took no longer."""
        return self.latency.p50

    @property
    def p90(self) -> float:
        """Nine of ten answers took no longer."""
        return self.latency.p90

    @property
    def p99(self) -> float:
        """99 of 100 answers took no longer."""
        return self.latency.p99

    @property
    def is_unmeasured(self) -> bool:
        """Whether it was stopped in its warm-up, which is counted nowhere."""
        return self.interrupted and not self.seconds

    @property
    def is_saturated(self) -> bool:
        """Whether the generator was the bottleneck: its threads had no time left."""
        whole = self.seconds + float(self.settings.get("warmup", 0.0))
        return bool(whole) and self.cpu / whole > 0.9 * int(self.settings.get("threads", 1))

    def assert_slo(
        self, *, errors: float | str = 0, rps: float | None = None, **latencies: "Unpack[Latencies]"
    ) -> None:
        """Fail unless the promise is kept: `assert_slo(p99="50ms", errors="0.1%", rps=200)`.

        Latencies are the most that may be, `rps` the least; no error may be unless `errors` says so.
        """
        from bridgehead.load.objective import broken
        from bridgehead.load.text import as_text

        __tracebackhide__ = True  # pytest shows the line of the test
        told = list(broken(self, errors, rps, latencies))
        if told:
            raise AssertionError("\n".join([*told, "", as_text(self)]))

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Of a JSON object."""
        # A report of before they were counted has none.
        known = {"dropped": 0, **values}
        made: dict[str, Any] = {each.name: known[each.name] for each in fields(cls)}
        for name in ("latency", "connect", "lag"):
            made[name] = Latency.from_json(values[name])
        made["scenarios"] = tuple(map(Portion.from_json, values["scenarios"]))
        made["timeline"] = tuple(map(Row.from_json, values["timeline"]))
        made["curve"] = tuple((quantile, latency) for quantile, latency in values["curve"])
        return cls(**made)


def read_report(file: Path) -> Report:
    """A report that `--json` has written."""
    try:
        return Report.from_json(json.loads(file.read_bytes()))
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise StartError(f"{file} cannot be read: {why}", "name a file that --json has written") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StartError(f"{file} is not a report", "name a file that --json has written") from None
