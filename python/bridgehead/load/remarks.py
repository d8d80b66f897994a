"""What a reader of a report has to know before he believes a figure.

Not a judgement of the server: each remark is about what the figures do not say.

Invariant: a run in which nothing was odd has none.
"""

from collections.abc import Iterator

from bridgehead.load import words
from bridgehead.load.report import Report


def remarks(report: Report) -> Iterator[str]:
    """Sentences."""
    if report.is_unmeasured:
        yield "It was stopped in the warm-up: nothing was measured yet."
        return
    if report.interrupted:
        yield f"It was stopped after {words.time(report.seconds)}."
    if report.unfinished:
        yield f"{words.count(report.unfinished)} requests had no answer yet when it was stopped."
    if report.unsent:
        yield (
            f"{words.count(report.unsent)} requests were due and never sent, since no connection was free:"
            " the server is slower than the rate, or there are too few connections."
        )
    if report.dropped:
        yield (
            f"{words.count(report.dropped)} requests of the warm-up still waited for a connection at its end"
            " and were dropped: the server is slower than the rate, or there are too few connections."
        )
    answered = sum(report.statuses.values())
    refused = sum(number for status, number in report.statuses.items() if status.startswith("4"))
    # With statuses of its own a run has judged them.
    if refused and not report.errors_by_kind.get("assertion"):
        yield f"{words.share(refused, answered)} of the answers have status 4xx, which is no error here."
    if report.lag.count and report.lag.p99 > max(0.001, report.latency.p50):
        yield (
            f"The generator itself was late: requests began {words.time(report.lag.p99)} (p99) after their"
            " time, which is in every latency. Give it more threads, or a core of its own."
        )
    if report.is_saturated:
        yield "The generator had no time left: this is its own speed, not the server's. Give it --threads."
    if not report.requests:
        yield "No request ended in the measured time."
