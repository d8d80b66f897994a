"""What differs between two reports, and how sure that is.

Each full second of a run is a sample of its own, and there are few: the intervals are Student's. A second
without a good answer counts for the rates, and has no latency to count.

Not a proof: seconds that follow each other are alike, and a machine that was busy in one of the runs tells
of that, not of the server. Not how it is shown (`compare.py`).

Invariant: the same reports give the same interval.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bridgehead.errors import StartError
from bridgehead.load import student
from bridgehead.load.report import Report, Row

# Of each row of a table: it has six, and of two equal runs one may be wrong in 5 of 100 tables at most.
CONFIDENCE = 1 - 0.05 / 6
# With fewer, an interval says next to nothing.
FEWEST_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From one run to another, as a part of the first (0.1 is 10 % more); that of a share in its own unit."""

    name: str
    before: float
    after: float
    change: float
    least: float
    most: float

    @property
    def is_shown(self) -> bool:
        """Whether the interval leaves nothing out but a difference."""
        return not self.least <= 0.0 <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The full seconds of a run; of a long one, rows of several seconds."""

    rows: Sequence[Row]

    @property
    def answered(self) -> Sequence[Row]:
        """Those with a good answer: a percentile of none is no latency."""
        return [row for row in self.rows if row.answers]

    @property
    def silent(self) -> Sequence[Row]:
        """Those without."""
        return [row for row in self.rows if not row.answers]

    @property
    def has_latencies(self) -> bool:
        """Whether there are enough of them for an interval."""
        return len(self.answered) >= FEWEST_SECONDS


LATENCIES: tuple[tuple[str, Callable[[Row], float]], ...] = (
    ("p50", lambda row: row.p50),
    ("p90", lambda row: row.p90),
    ("p99", lambda row: row.p99),
    ("max", lambda row: row.max),
)


def sample(report: Report, name: str) -> Sample:
    """What can be compared of a report; `name` is how it is called where there is too little."""
    # A run shorter than a second has one row, which is none.
    width = max((row.seconds for row in report.timeline), default=0.0)
    rows = [row for row in report.timeline if row.seconds > 0.99 * max(width, 1.0)]
    if len(rows) < FEWEST_SECONDS:
        found = {0: "no full second", 1: "1 full second"}.get(len(rows), f"{len(rows)} full seconds")
        said = f"report {name} has {found}, and {FEWEST_SECONDS} are needed"
        raise StartError(said, "measure longer: --duration 30s")
    return Sample(rows=rows)


def rates(before: Sample, after: Sample) -> Change:
    """Answers a second; a second without one is a second of 0."""
    return _change("rps", [row.rps for row in before.rows], [row.rps for row in after.rows])


def latencies(before: Sample, after: Sample) -> Iterator[Change]:
    """Each percentile's change, over the seconds that have answers."""
    for name, of in LATENCIES:
        yield _change(name, [of(row) for row in before.answered], [of(row) for row in after.answered])


def errors(before: Sample, after: Sample) -> Change:
    """The share of requests that failed, and by how much it has moved."""
    first, second = _failed(before.rows), _failed(after.rows)
    least, most = student.difference(first, second, CONFIDENCE)
    moved = second.value - first.value
    return Change(name="errors", before=first.value, after=second.value, change=moved, least=least, most=most)


def failed(rows: Sequence[Row]) -> float:
    """The share of requests that ended as errors."""
    return _failed(rows).value


def _failed(rows: Sequence[Row]) -> student.Estimate:
    return student.share([row.errors for row in rows], [row.errors + row.answers for row in rows])


def _change(name: str, before: Sequence[float], after: Sequence[float]) -> Change:
    first, second = student.mean(before), student.mean(after)
    least, most = student.ratio(first, second, CONFIDENCE)
    moved = _grown(first.value, second.value)
    return Change(
        name=name, before=first.value, after=second.value, change=moved, least=least - 1, most=most - 1
    )


def _grown(before: float, after: float) -> float:
    """As a part of the first."""
    if before:
        return after / before - 1
    return math.inf if after else 0.0
