"""What a service promises of its answers, and whether a report keeps it.

Not a measurement: the report has been made.

Invariant: a run without an answer keeps no promise of latency, and all that is broken is told at once.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from bridgehead.errors import StartError
from bridgehead.load import words
from bridgehead.load.report import Latency, Report
from bridgehead.quantities import seconds


class Latencies(TypedDict, total=False):
    """The most that each may be: seconds, or with a unit (`"50ms"`)."""

    mean: float | str
    p50: float | str
    p75: float | str
    p90: float | str
    p95: float | str
    p99: float | str
    p999: float | str
    p9999: float | str
    max: float | str


LATENCIES = tuple(Latencies.__annotations__)


def broken(report: Report, errors: float | str, rps: float | None, times: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each promise that is not kept."""
    if not report.latency.count:
        yield "no request was answered without an error"
    most = _errors(errors, report.requests)
    if report.errors > most:
        kinds = ", ".join(f"{kind}: {number}" for kind, number in report.errors_by_kind.items())
        yield f"{report.errors} errors of {report.requests} requests, and {errors} may be ({kinds})"
    if report.unsent:
        yield f"{report.unsent} requests of the rate were due and never sent: no connection was free"
    if rps is not None and report.rps < rps:
        yield f"{words.a_second(report.rps)} answers a second, and {words.a_second(rps)} are due"
    for name, most_written in times.items():
        yield from _late(report.latency, name, most_written)


def _late(latency: Latency, name: str, written: object) -> Iterator[str]:
    if name not in LATENCIES:
        raise TypeError(f"a report has no {name!r}; it has {', '.join(LATENCIES)}")
    came = getattr(latency, name)
    if latency.count and came > seconds(written):
        yield f"{name} is {words.time(came)}, and {words.time(seconds(written))} is due"


def _errors(written: float | str, requests: int) -> float:
    """How many there may be: a number, or a share such as `0.1%`."""
    if not isinstance(written, str):
        return written
    try:
        share = float(written.removesuffix("%")) if written.endswith("%") else math.nan
    except ValueError:
        share = math.nan
    if not 0 <= share <= 100:
        raise StartError(f"{written!r} is not a number of errors", "write 3, or a share such as '0.1%'")
    return share / 100 * requests
