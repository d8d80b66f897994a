"""Sends the table's cases to a server, whole or cut, and says what is not as the table has it.

Not pytest's: `run.py` uses it as well.
Invariant: nothing depends on time. Who sends reads what comes, and asks again where a reset took the answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness import ClosedError, Response, Server
from table import Case

if TYPE_CHECKING:
    from bridgehead.testing import Folder

# What follows each case on its connection: run after what is served, never after a refusal.
FOLLOWER = b"GET /behind HTTP/1.1\r\nHost: test\r\n\r\n"
PATHS = ("/canary", "/canary?wait=0.05", "/canary?wait=0.01&pieces=4")
# A reset is seen by nobody who reads at once; on a machine that stands still it may be, a few times.
TRIES = 5
# Of a case that is larger than this, not every byte is a place to cut.
SMALL = 400


def serving(ledger: Folder, *options: str, **how: Any) -> Server:
    """The corpus' application, with a ledger for the canary."""
    return Server("corpus_app:app", "--no-access-log", *options, env=ledger.env, **how)


class Corpus:
    """One server, and a connection beside to ask it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._beside = server.connect()
        self.inputs = 0

    def begun(self) -> int:
        """How many requests of ours the application has begun."""
        count = self._beside.ask("/begun").json()
        assert isinstance(count, int)
        return count

    def complaints(self, case: Case, pieces: list[bytes]) -> list[str]:
        """What is wrong with what came of it."""
        before = self.begun()
        answers = self._tried(pieces)
        ran = self.begun() - before
        self.inputs += 1
        wrong = list(_compare(case, answers))
        due = len(case.served) + (not case.refused)
        # An upload that breaks after it has begun is begun, and refused.
        if not due <= ran <= due + bool(case.refused):
            wrong.append(f"{ran} requests ran, and {due} were due")
        return [f"case {case.name}, {len(pieces)} pieces: {each}\n    {case.send[:300]!r}" for each in wrong]

    def _tried(self, pieces: list[bytes]) -> list[Response]:
        for _ in range(TRIES):
            answers, is_reset = self._answers(pieces)
            if answers or not is_reset:
                break
        return answers

    def _answers(self, pieces: list[bytes]) -> tuple[list[Response], bool]:
        answers: list[Response] = []
        with self.server.connect() as client:
            for piece in pieces:
                if not client.take_in() or not client.try_send(piece):
                    break
                if len(pieces) > 1:
                    # A whole exchange elsewhere: the server has had time to look at this piece.
                    self.begun()
            else:
                client.half_close_quietly()
            try:
                while True:
                    answers.append(client.read_response())
            except ClosedError as closed:
                return answers, "reset" in str(closed)


def _compare(case: Case, answers: list[Response]) -> Iterator[str]:
    finals = [answer for answer in answers if answer.status >= 200]
    bodies = [answer.body.decode("latin-1") for answer in finals if answer.status == 200]
    statuses = [answer.status for answer in finals]
    served = list(case.served) if case.refused else [*case.served, ""]
    if bodies != served:
        yield f"the bodies {served} were due, and came {bodies} ({statuses})"
    refused = [status for status in statuses if status != 200]
    if case.refused and (len(refused) != 1 or refused[0] not in case.refused or statuses[-1] == 200):
        yield f"one of {case.refused} was due, and came {statuses}"
    elif not case.refused and refused:
        yield f"nothing but answers was due, and came {statuses}"
    elif case.refused and not finals[-1].closes:
        yield "the refusal does not end its connection"


# --- how a case is cut


def whole(case: Case) -> list[list[bytes]]:
    return [[case.send + FOLLOWER]]


def some_cuts(case: Case, count: int = 3) -> list[list[bytes]]:
    """In two at some places, the same in each run."""
    chance = random.Random(case.name)
    data = case.send + FOLLOWER
    return [[data[:at], data[at:]] for at in sorted(chance.sample(range(1, len(data)), count))]


def all_cuts(case: Case) -> list[list[bytes]]:
    """In two at each place, and byte by byte; what is long, in two at some places and all of the last."""
    data = case.send + FOLLOWER
    places: range | list[int] = range(1, len(data))
    if len(data) > SMALL:
        chance = random.Random(case.name)
        places = sorted({*chance.sample(places, SMALL // 4), *range(len(data) - 60, len(data))})
        return [[data[:at], data[at:]] for at in places]
    return [*([data[:at], data[at:]] for at in places), drip(case)]


def drip(case: Case) -> list[bytes]:
    data = case.send + FOLLOWER
    return [data[at : at + 1] for at in range(len(data))]
