"""Two reports side by side, as text.

Not the figures (`changes.py`).

Invariant: a server that answered nothing for seconds is named, and nothing of it is called no different.
"""

from collections.abc import Iterator, Sequence

from bridgehead.load import words
from bridgehead.load.changes import (
    CONFIDENCE,
    FEWEST_SECONDS,
    Change,
    Sample,
    errors,
    failed,
    latencies,
    rates,
    sample,
)
from bridgehead.load.report import Report, Row
from bridgehead.load.text import settings

_ALIKE = "no difference shown"


def as_text(first: Report, second: Report, *, names: tuple[str, str]) -> str:
    """A table, with what was compared above it."""
    reports = (first, second)
    lines = [
        f"{letter}  {name}: {report.target}, {settings(report)}, {words.time(report.seconds)}"
        for letter, name, report in zip("AB", names, reports, strict=True)
    ]
    before, after = sample(first, "A"), sample(second, "B")
    lines += [
        "",
        f"{'':8} {'A':>10} {'B':>10} {'change':>9}   {100 * CONFIDENCE:.1f} % interval",
        *_table(before, after),
    ]
    lines += ["", "Means of the seconds' values; the interval is Student's, each second a sample."]
    lines += [f"! {each}" for each in _remarks(reports, (before, after))]
    return "\n".join(lines) + "\n"


def _table(before: Sample, after: Sample) -> Iterator[str]:
    """Rates first: seconds without an answer are in these alone."""
    is_silent = bool(before.silent or after.silent)
    # One second that holds a whole stall widens the interval until it shows nothing.
    alike = "not told apart" if is_silent else _ALIKE
    rate = rates(before, after)
    yield _row(rate, "" if rate.is_shown else "seconds without an answer: see below" if is_silent else _ALIKE)
    if before.has_latencies and after.has_latencies:
        for change in latencies(before, after):
            told = "" if change.is_shown else alike
            yield _row(change, f"{told} in seconds with answers".lstrip() if is_silent else told)
    wrong = errors(before, after)
    yield _errors(wrong, "" if wrong.is_shown else alike)
    silences = " / ".join(f"{_length(each.silent)} of {_length(each.rows)}" for each in (before, after))
    yield f"seconds without a good answer: {silences}"


def _row(change: Change, told: str) -> str:
    show = words.a_second if change.name == "rps" else words.time
    moved = f"{change.change:+.1%}".replace("%", " %")
    interval = f"{change.least:+.1%} to {change.most:+.1%}".replace("%", " %")
    return _columns(change.name, show(change.before), show(change.after), moved, interval, told)


def _errors(change: Change, told: str) -> str:
    before, after = (words.percent(each) for each in (change.before, change.after))
    moved, least, most = (_points(each) for each in (change.change, change.least, change.most))
    return _columns(change.name, before, after, moved, f"{least} to {most} of 100 requests", told)


def _columns(name: str, before: str, after: str, moved: str, interval: str, told: str) -> str:
    return f"{name:8} {before:>10} {after:>10} {moved:>9}   {interval}   {told}".rstrip()


def _points(part: float) -> str:
    """Of a hundred; what is there is never shown as nothing."""
    points = 100 * part
    return f"{points:+.1f}" if not points or abs(points) >= 0.1 else f"{points:+.1g}"


def _length(rows: Sequence[Row]) -> str:
    return f"{sum(row.seconds for row in rows):.0f}"


def _remarks(reports: tuple[Report, Report], samples: tuple[Sample, Sample]) -> Iterator[str]:
    """What has to be known before a figure is believed."""
    for letter, report, each in zip("AB", reports, samples, strict=True):
        if each.silent:
            length = f"{_length(each.silent)} of its {_length(each.rows)} seconds"
            told = "0 in its rps, and without a latency of their own"
            yield f"{letter} has no good answer in {length}: {told}."
        if not each.has_latencies:
            answered = f"{letter} has answers in {len(each.answered)} of them"
            yield f"Latencies are not compared: {answered}, and {FEWEST_SECONDS} are needed."
        whole = words.share(report.errors, report.requests)
        if report.errors > sum(row.errors for row in each.rows) and whole != words.percent(failed(each.rows)):
            yield f"{letter} had more errors, in no full second: {whole} of all its requests."
    asked = [report.settings.get("asked") for report in reports]
    # A report of before it was noted says nothing of it.
    if _kind(reports[0]) != _kind(reports[1]) or (all(asked) and asked[0] != asked[1]):
        yield "The runs were not made alike, so the change is not the server's alone."


def _kind(report: Report) -> list[object]:
    alike = ("protocol", "streams", "connections", "threads", "rate", "keep_alive")
    return [*(report.settings.get(name) for name in alike), [each.name for each in report.scenarios]]
