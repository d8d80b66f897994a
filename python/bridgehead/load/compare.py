"""What differs between two reports, and how sure that is.

Each full second of a run is a sample. The interval is a bootstrap's: both runs are drawn anew from their own
seconds, some thousand times, and 95 of 100 of the changes lie within it.

Not a proof: seconds that follow each other are alike, and a machine that was busy in one of the runs tells
of that, not of the server.

Invariant: the same reports give the same interval.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from bridgehead.errors import StartError
from bridgehead.load import words
from bridgehead.load.report import Report, Row
from bridgehead.load.text import settings

_DRAWS = 2000
_CONFIDENCE = 0.95
# With fewer, an interval says next to nothing.
FEWEST_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From one run to another, as a part of the first: 0.1 is 10 % more."""

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


METRICS: tuple[tuple[str, Callable[[Row], float]], ...] = (
    ("rps", lambda row: row.rps),
    ("p50", lambda row: row.p50),
    ("p90", lambda row: row.p90),
    ("p99", lambda row: row.p99),
    ("max", lambda row: row.max),
)


def changes(first: Report, second: Report) -> Iterator[Change]:
    """Each metric's change."""
    before, after = _seconds(first, "A"), _seconds(second, "B")
    for name, of in METRICS:
        yield _change(name, [of(row) for row in before], [of(row) for row in after])


def _seconds(report: Report, name: str) -> list[Row]:
    """Full rows that have an answer: a percentile of none is no latency."""
    longest = max((row.seconds for row in report.timeline), default=0.0)
    full = [row for row in report.timeline if row.seconds > 0.99 * longest and row.answers]
    if len(full) < FEWEST_SECONDS:
        said = f"report {name} has {len(full)} full seconds with answers, and {FEWEST_SECONDS} are needed"
        raise StartError(said, "measure longer: --duration 30s")
    return full


def _change(name: str, before: Sequence[float], after: Sequence[float]) -> Change:
    draw = random.Random(0)

    def again(values: Sequence[float]) -> float:
        return fmean(draw.choices(values, k=len(values)))

    drawn = sorted(again(after) / again(before) - 1 for _ in range(_DRAWS))
    cut = round(_DRAWS * (1 - _CONFIDENCE) / 2)
    return Change(
        name=name,
        before=fmean(before),
        after=fmean(after),
        change=fmean(after) / fmean(before) - 1,
        least=drawn[cut],
        most=drawn[-cut - 1],
    )


def as_text(first: Report, second: Report, *, names: tuple[str, str]) -> str:
    """A table, with what was compared above it."""
    lines = [
        f"{letter}  {name}: {report.target}, {settings(report)}, {words.time(report.seconds)}"
        for letter, name, report in zip("AB", names, (first, second), strict=True)
    ]
    lines += ["", f"{'':8} {'A':>10} {'B':>10} {'change':>9}   95 % interval"]
    lines += [_row(change) for change in changes(first, second)]
    lines.append(f"{'errors':8} {_errors(first):>10} {_errors(second):>10}")
    lines += ["", "Means of the seconds' values; the interval is drawn from the seconds (bootstrap)."]
    if _kind(first) != _kind(second):
        lines.append("! The runs were not made alike, so the change is not the server's alone.")
    return "\n".join(lines) + "\n"


def _row(change: Change) -> str:
    show = words.a_second if change.name == "rps" else words.time
    interval = f"{change.least:+.1%} to {change.most:+.1%}".replace("%", " %")
    told = "" if change.is_shown else "   no difference shown"
    moved = f"{change.change:+.1%}".replace("%", " %")
    return f"{change.name:8} {show(change.before):>10} {show(change.after):>10} {moved:>9}   {interval}{told}"


def _errors(report: Report) -> str:
    return words.share(report.errors, report.requests)


def _kind(report: Report) -> list[object]:
    alike = ("protocol", "streams", "connections", "threads", "rate", "keep_alive")
    return [*(report.settings.get(name) for name in alike), [each.name for each in report.scenarios]]
