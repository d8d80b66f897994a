"""The seconds of a run as CSV.

Not the report's other figures: JSON has them all.

Invariant: the names of the columns are those of JSON.
"""

import csv
import io
from dataclasses import asdict

from bridgehead.load.report import Report, Row

COLUMNS = ("at", "seconds", "answers", "errors", "rps", "bytes", "p50", "p90", "p99", "max")
_LATENCIES = ("p50", "p90", "p99", "max")


def as_csv(report: Report) -> str:
    """One line for each row of the timeline, below the names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_cells(row) for row in report.timeline)
    return text.getvalue()


def _cells(row: Row) -> dict[str, object]:
    """A second without an answer has no latency, which is not a short one."""
    cells = {**asdict(row), "rps": row.rps}
    return cells if row.answers else {**cells, **dict.fromkeys(_LATENCIES)}
