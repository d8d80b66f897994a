"""A report as one page of HTML: nothing is fetched, nothing runs, plots are SVG.

Not the curves themselves (`drawing.py`).

Invariant: what came from outside, a URL or an error's text, is escaped.
"""

from collections.abc import Iterator, Sequence
from html import escape

from bridgehead.load import words
from bridgehead.load.drawing import Line, over_time, percentiles
from bridgehead.load.remarks import remarks
from bridgehead.load.report import Latency, Portion, Report, Row
from bridgehead.load.text import settings, statuses

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #666; --line: #ddd; --paper: #fff;
  --one: #1f6feb; --two: #d97706; --three: #c02626; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #999; --line: #333; --paper: #161616;
  --one: #6cb0ff; --two: #f0b060; --three: #ff7b7b; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 2rem 0 .3rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); }
.remark { border-left: 3px solid var(--two); padding-left: .6rem; }
.figures { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 1rem 0; }
.figures div { min-width: 5rem; } .figures b { display: block; font-size: 1.35rem; font-weight: 600; }
table { border-collapse: collapse; }
td, th { text-align: right; padding: .15rem .9rem .15rem 0; font-weight: normal; }
th { color: var(--soft); } td:first-child, th:first-child { text-align: left; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: var(--soft); }
.grid { stroke: var(--line); } .plot { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.one { stroke: var(--one); } .two { stroke: var(--two); } .three { stroke: var(--three); }
text.one { fill: var(--one); stroke: none; } text.two { fill: var(--two); stroke: none; }
text.three { fill: var(--three); stroke: none; }
"""


def as_page(report: Report) -> str:
    """The whole page."""
    return "\n".join(_parts(report)) + "\n"


def _parts(report: Report) -> Iterator[str]:
    title = escape(f"Load on {report.target}")
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>"
    yield f'<p class="soft">{escape(report.started)} · {escape(settings(report))}</p>'
    yield from (f'<p class="remark">{escape(each)}</p>' for each in remarks(report))
    yield _figures(report)
    yield from _plots(report)
    yield "<h2>Latency</h2>"
    yield _table(("", *_COLUMNS), _latencies(report))
    if len(report.scenarios) > 1:
        yield "<h2>Scenarios</h2>"
        heads = ("", "requests", "errors", "p50", "p90", "p99", "max")
        yield _table(heads, map(_scenario, report.scenarios))
    yield f"<h2>Statuses</h2>\n<p>{escape(statuses(report)) or 'none'}</p>"
    if report.errors:
        yield "<h2>Errors</h2>"
        yield _table(("", "number", "the first"), _errors(report))
    yield "</body>\n</html>"


def _figures(report: Report) -> str:
    latency = report.latency
    shown = {
        "answers a second": words.a_second(report.rps),
        "requests": words.count(report.requests),
        "errors": f"{words.count(report.errors)} ({words.share(report.errors, report.requests)})",
    }
    if latency.count:
        quantiles = {"p50": latency.p50, "p99": latency.p99, "longest": latency.max}
        shown |= {name: words.time(value) for name, value in quantiles.items()}
    else:
        shown["latency"] = "no answer to measure"
    shown["measured for"] = words.time(report.seconds)
    figures = "\n".join(f"<div><b>{escape(value)}</b>{name}</div>" for name, value in shown.items())
    return f'<div class="figures">\n{figures}\n</div>'


def _plots(report: Report) -> Iterator[str]:
    rows = report.timeline
    latencies = [
        Line(name=name, kind=kind, points=[(row.at, _latency(row, name)) for row in rows])
        for name, kind in (("p50", "one"), ("p90", "two"), ("p99", "three"))
    ]
    answers = Line(name="answers", kind="one", points=[(row.at, row.rps) for row in rows])
    errors = Line(
        name="errors",
        kind="three",
        points=[(row.at, row.errors / row.seconds) for row in rows if row.seconds],
    )
    yield "<h2>Latency over time</h2>"
    yield over_time(latencies, words.time)
    yield "<h2>Latency by percentile</h2>"
    yield percentiles(report.curve, words.time)
    yield "<h2>Answers a second</h2>"
    yield over_time([answers], words.a_second)
    yield "<h2>Errors a second</h2>"
    yield over_time([errors], words.a_second) if report.errors else "<p>none</p>"


def _latency(row: Row, name: str) -> float | None:
    """None of a second without an answer: a gap, not a level."""
    return float(getattr(row, name)) if row.answers else None


_COLUMNS = ("min", "mean", "p50", "p75", "p90", "p95", "p99", "p999", "max")


def _latencies(report: Report) -> Iterator[Sequence[str]]:
    for name, latency in (("answers", report.latency), ("connecting", report.connect)):
        if latency.count:
            yield (name, *_times(latency, _COLUMNS))


def _times(latency: Latency, names: Sequence[str]) -> Iterator[str]:
    return (words.time(getattr(latency, name)) for name in names)


def _scenario(portion: Portion) -> Sequence[str]:
    times = _times(portion.latency, ("p50", "p90", "p99", "max")) if portion.latency.count else ("",) * 4
    return (portion.name, words.count(portion.requests), words.count(portion.errors), *times)


def _errors(report: Report) -> Iterator[Sequence[str]]:
    for kind, number in report.errors_by_kind.items():
        yield (words.KINDS.get(kind, kind), words.count(number), report.first_errors.get(kind, ""))


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "\n".join(["<table>", row(heads, "th"), *(row(cells, "td") for cells in rows), "</table>"])
