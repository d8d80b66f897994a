"""The seconds of a run as CSV.

Not the report's other figures: JSON has them all.

Invariant: the names of the columns are those of JSON.
"""

import csv
import io
from dataclasses import asdict

from bridgehead.load.report import Report

COLUMNS = ("at", "seconds", "answers", "errors", "rps", "bytes", "p50", "p90", "p99", "max")


def as_csv(report: Report) -> str:
    """One line for each row of the timeline, below the names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(row), "rps": row.rps} for row in report.timeline)
    return text.getvalue()
