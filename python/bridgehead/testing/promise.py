"""The promise of a server, and whether it was kept.

*Each request that a client has fully sent gets one complete answer, one explicit refusal, or a close with
zero bytes and no start of the application; nothing runs twice; no truncated answer looks complete.*

Not who measures: a canary has the client's side (`canary.py`), the application's ledger the other
(`ledger.py`).

Invariant: judges what is written, and excuses nothing by itself. Who kills a server says what that excuses.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from bridgehead.testing.ledger import Entry, Event, sender_of


class Outcome(Enum):
    """What came back, as the client has seen it."""

    ANSWERED = "a complete answer"
    REFUSED = "a complete answer of status 503: a refusal"
    CLOSED = "the connection was closed, or reset, without a byte"
    BROKEN = "an answer that visibly ended early"
    SILENCE = "nothing within the patience"
    UNREACHED = "no connection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request of a client's log."""

    request: int
    at: float  # seconds since the canary's first
    outcome: Outcome
    fully_sent: bool = True
    status: int | None = None
    is_right: bool = True  # whether a complete body is the one that is due
    answers: int = 1  # complete ones; two to one request would be one too many
    kept: bool = False  # whether its connection had carried a request before
    said: str = ""  # the error, if there was one


class Breach(Enum):
    """How a promise is broken."""

    RAN_TWICE = "the application began it more than once"
    UNANSWERED = "it was fully sent, and there was neither an answer nor a close"
    STARTED_AND_CLOSED = "it was fully sent and begun, and closed without a byte"
    BROKEN_OFF = "it was fully sent, and its answer visibly ended early"
    LOOKS_COMPLETE = "its answer looks complete, and is not what was due"
    ANSWERED_TWICE = "there was more than one answer"
    ANSWERED_BY_NOBODY = "there was an answer of 200, and the application never began it"
    NEVER_SENT = "the application began it, and no client has sent it"


@dataclass(frozen=True, slots=True)
class Violation:
    """One request that the promise was not kept for."""

    request: int
    breach: Breach
    sent: Sent | None

    def __str__(self) -> str:
        seen = "" if self.sent is None else f" (at {self.sent.at:.2f} s: {self.sent.outcome.value})"
        return f"request {self.request}: {self.breach.value}{seen}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a comparison came to."""

    sent: int
    fully_sent: int  # of those; the promise is about no others
    outcomes: dict[Outcome, int]
    violations: tuple[Violation, ...]
    unended: tuple[int, ...]  # begun, and neither finished nor cancelled nor failed: killed, or still running

    def assert_kept(self, *, excused: Collection[Breach] = ()) -> None:
        """Fail if the promise was broken; `excused` is what a kill makes unavoidable."""
        left = [str(each) for each in self.violations if each.breach not in excused]
        assert not left, f"{len(left)} of {self.sent} requests:\n" + "\n".join(left[:50])
        came = ", ".join(f"{number} × {outcome.name}" for outcome, number in self.outcomes.items())
        assert self.fully_sent, (
            f"no request was fully sent, so nothing was shown ({came or 'none was begun'})"
        )


def judge(log: Iterable[Sent], ledger: Iterable[Entry], *, others: Collection[int] = ()) -> Verdict:
    """Compare what the client has seen with what the application has noted.

    `others` are senders (`ledger.py`) who judge their own requests.
    """
    log, ledger = list(log), [entry for entry in ledger if sender_of(entry.request) not in others]
    starts = Counter(entry.request for entry in ledger if entry.event is Event.STARTED)
    ended = {entry.request for entry in ledger if entry.event is not Event.STARTED}
    known = {sent.request: sent for sent in log}
    violations = [
        Violation(sent.request, breach, sent) for sent in log for breach in _of(sent, starts[sent.request])
    ]
    for request, count in starts.items():
        if count > 1:
            violations.append(Violation(request, Breach.RAN_TWICE, known.get(request)))
        if request not in known:
            violations.append(Violation(request, Breach.NEVER_SENT, None))
    return Verdict(
        sent=len(log),
        fully_sent=sum(sent.fully_sent for sent in log),
        outcomes=dict(Counter(sent.outcome for sent in log)),
        violations=tuple(violations),
        unended=tuple(request for request in starts if request not in ended),
    )


def _of(sent: Sent, starts: int) -> Iterator[Breach]:
    """What is wrong with one request, by itself."""
    if not sent.is_right and sent.outcome is Outcome.ANSWERED:
        # Whoever sent it in part may not be fooled either.
        yield Breach.LOOKS_COMPLETE
    if sent.answers > 1:
        yield Breach.ANSWERED_TWICE
    if not sent.fully_sent:
        return
    match sent.outcome:
        case Outcome.SILENCE:
            yield Breach.UNANSWERED
        case Outcome.CLOSED if starts:
            yield Breach.STARTED_AND_CLOSED
        case Outcome.BROKEN:
            yield Breach.BROKEN_OFF
        case Outcome.ANSWERED if sent.status == 200 and not starts:
            yield Breach.ANSWERED_BY_NOBODY
