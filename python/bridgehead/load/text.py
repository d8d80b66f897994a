"""A report as text.

Not where it is printed (`command.py`).

Invariant: errors stand beside the latencies that leave them out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bridgehead.load import plot, words
from bridgehead.load.remarks import remarks
from bridgehead.load.report import Latency, Portion, Report

_QUANTILES = ("p50", "p75", "p90", "p95", "p99", "p999", "max")


def as_text(report: Report, *, plain: bool = False) -> str:
    """All that fits on a screen; `plain` for terminals without UTF-8."""
    text = "\n".join(_lines(report, plain)) + "\n"
    return text.replace("µs", "us").encode("ascii", "replace").decode() if plain else text


def _lines(report: Report, plain: bool) -> Iterator[str]:
    yield f"{report.target}: {settings(report)}"
    yield ""
    if report.is_unmeasured:
        yield from (f"  ! {each}" for each in remarks(report))
        return
    yield f"  requests  {words.count(report.requests)} in {words.time(report.seconds)}"
    yield f"  rps       {words.a_second(report.rps)}"
    yield f"  errors    {_errors(report)}"
    for kind, said in report.first_errors.items():
        yield f"            {words.KINDS.get(kind, kind)}, the first: {said}"
    yield f"  statuses  {statuses(report) or 'none'}"
    yield f"  bodies    {words.bytes_of(report.bytes)}"
    yield f"  latency   {_latency(report.latency)}"
    if report.connect.count:
        connect = report.connect
        times = f"p50 {words.time(connect.p50)}, max {words.time(connect.max)}"
        yield f"  connect   {words.count(connect.count)} times, {times}"
    if len(report.scenarios) > 1:
        yield ""
        yield from map(_scenario, report.scenarios)
    if report.curve:
        yield ""
        yield from (f"  {each}" for each in plot.distribution(report.curve, plain=plain))
    if len(report.timeline) > 1:
        yield ""
        yield f"  rps over time  {plot.line([row.rps for row in report.timeline], plain=plain)}"
        yield f"  p99 over time  {plot.line([row.p99 for row in report.timeline], plain=plain)}"
    for number, each in enumerate(remarks(report)):
        if not number:
            yield ""
        yield f"  ! {each}"


def settings(report: Report) -> str:
    """How the load was put on, in words."""
    told = report.settings
    rate = told.get("rate")
    said = "message" if told.get("protocol") == "websocket" else "request"
    pace = f"{words.a_second(rate)} {said}s a second" if rate else f"each {said} follows the last answer"
    parts = [f"{told.get('connections')} connections{_spoken(told)}", pace]
    if told.get("warmup"):
        parts.append(f"after {words.time(told['warmup'])} of warm-up")
    if told.get("keep_alive") is False:
        parts.append("a connection for each request")
    return ", ".join(parts)


def _spoken(told: Mapping[str, Any]) -> str:
    """What is not said of HTTP/1.1, which is the usual."""
    match told.get("protocol"):
        case "2":
            return f" of HTTP/2 with {told.get('streams')} streams"
        case "websocket":
            return " of WebSockets"
    return ""


def statuses(report: Report | Portion) -> str:
    """`200: 1,234  404: 5`."""
    return "  ".join(f"{status}: {words.count(number)}" for status, number in report.statuses.items())


def _errors(report: Report) -> str:
    if not report.errors:
        return "none"
    share = words.share(report.errors, report.requests)
    return f"{words.count(report.errors)} ({share}): {words.kinds(report.errors_by_kind)}"


def _latency(latency: Latency) -> str:
    if not latency.count:
        return "no answer to measure"
    shown = {"p999": "p99.9"}
    return "  ".join(f"{shown.get(name, name)} {words.time(getattr(latency, name))}" for name in _QUANTILES)


def _scenario(portion: Portion) -> str:
    latency = portion.latency
    times = f"p50 {words.time(latency.p50)}, p99 {words.time(latency.p99)}"
    told = times if latency.count else "no answer to measure"
    counted = f"{words.count(portion.requests)} requests, {words.count(portion.errors)} errors"
    return f"  {portion.name}: {counted}, {told}"
