"""The corpus of malformed requests: each comes to what its table says; h11 and Node's llhttp stand beside.

All of it whole, and some cases cut at every byte; `make differential` cuts them all, and makes more of them.
Invariant: nothing is taken here that both judges refuse, and a body that a judge takes has the same bytes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import malformed_bytes
import malformed_rows
import pytest
from case import CLOSED, KEPT, WAITS, Case, Verdict
from harness import Server
from judges import End, Read, Reading, read_by_h11
from node_judge import read_by_node, why_not
from ours import FOLLOWER, read_at_every_cut, read_by_us

TABLES = {
    **{place.name: tuple(place.cases()) for place in malformed_bytes.PLACES},
    "framings": tuple(malformed_rows.framings()),
    "in order": tuple(malformed_rows.in_order()),
    "lines": tuple(malformed_rows.lines()),
    "chunks": tuple(malformed_rows.chunks()),
    "pipelined": tuple(malformed_rows.pipelined()),
}
CASES = [case for table in TABLES.values() for case in table]
# `make differential` leaves nothing out. Else one case of so many is cut.
IS_WHOLE = "BRIDGEHEAD_TEST_DIFFERENTIAL" in os.environ
JUDGES = ("h11", "Node's llhttp")
SEED = os.environ.get("BRIDGEHEAD_TEST_SEED", "1")
CUT = CASES if IS_WHOLE else CASES[::40]
MUTATIONS = 5000 if IS_WHOLE else 500
# What h11 says of an empty line before a request. RFC 9112 §2.2 wants it to be passed over, as llhttp does.
BLANK = "no request line received"
# A longer one is cut at places by chance.
LONGEST, PLACES = 600, 100


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Hundreds of connections wait for their second half at once, and longer where the machine is busy.
    patience = [
        word
        for name in ("first-byte", "header", "body", "write", "queue")
        for word in (f"--timeout-{name}", "60s")
    ]
    with Server("framing_app:app", "--no-access-log", "--min-rate", "0", *patience) as server:
        yield server


def test_the_corpus_has_cases_enough_and_none_of_them_twice() -> None:
    assert len(CASES) >= 2900
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.verdict.end for case in CASES} >= {KEPT, CLOSED, WAITS, 400, 413, 414, 417, 431, 501, 505}


@pytest.mark.parametrize("part", range(8))
def test_a_malformed_request_comes_to_what_its_table_says_and_to_nothing_that_both_judges_refuse(
    server: Server, part: int
) -> None:
    cases = CASES[part::8]
    ours = [read_by_us(server, case.data + FOLLOWER) for case in cases]
    wrong = [
        f"{case.name}: {case.verdict} was due, and came {verdict_of(reading)}\n    {case.data[:300]!r}"
        for case, reading in zip(cases, ours, strict=True)
        if verdict_of(reading) != case.verdict
    ]
    wrong += compared([case.data for case in cases], ours)
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:40])


@pytest.mark.timeout(3600 if IS_WHOLE else 60)
@pytest.mark.parametrize("part", range(8))
def test_a_malformed_request_comes_to_the_same_wherever_it_is_cut(server: Server, part: int) -> None:
    wrong = []
    with server.connect() as beside:
        for case in CUT[part::8]:
            data = case.data + FOLLOWER
            for place, reading in read_at_every_cut(server, data, places(case), beside):
                if verdict_of(reading) != case.verdict:
                    wrong.append(
                        f"{case.name} cut at {place}: {verdict_of(reading)}, and {case.verdict} was due"
                    )
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:40])


@pytest.mark.timeout(3600 if IS_WHOLE else 60)
def test_what_is_made_of_the_corpus_by_chance_is_nothing_that_both_judges_refuse(server: Server) -> None:
    streams = [mutated(f"{SEED}-{number}") for number in range(MUTATIONS)]
    ours = [read_by_us(server, data + FOLLOWER) for data in streams]
    wrong = compared(streams, ours)
    assert not wrong, f"{len(wrong)} of {MUTATIONS}:\n" + "\n".join(wrong[:40])


# --- what is due


def verdict_of(reading: Reading) -> Verdict:
    """What became of a case that `FOLLOWER` stood behind."""
    bodies = [request.body for request in reading.requests]
    targets = [request.target for request in reading.requests]
    if reading.end is End.REFUSED:
        return Verdict(int(reading.why[:3]), tuple(bodies))
    if reading.end is End.CLOSED:
        return Verdict(CLOSED, tuple(bodies))
    if targets[-1:] == [b"/behind"]:
        return Verdict(KEPT, tuple(bodies[:-1]))
    return Verdict(WAITS, tuple(bodies))


def compared(streams: list[bytes], ours: list[Reading]) -> list[str]:
    """What the judges have against it. Without Node there is one judge, whose refusal alone says nothing."""
    whole = [data + FOLLOWER for data in streams]
    theirs = [[read_by_h11(data)] for data in whole]
    if not why_not():
        for readings, reading in zip(theirs, read_by_node(whole), strict=True):
            readings.append(reading)
    return [
        f"{complaint}\n    {data[:300]!r}"
        for data, our, their in zip(streams, ours, theirs, strict=True)
        for complaint in _complaints(our, their)
    ]


def _complaints(ours: Reading, theirs: list[Reading]) -> Iterator[str]:
    for number, read in enumerate(ours.requests):
        others = [reading.requests[number] for reading in theirs if number < len(reading.requests)]
        for other in others:
            if other.framing != read.framing:
                yield f"request {number} is {read.framing} here, and {other.framing} to a judge"
                return
        kept = number > 0 and _asks_to_stay(ours.requests[number - 1])
        over = [
            reading for reading in theirs if _is_over(reading) and not (kept and reading.end is End.CLOSED)
        ]
        if not others and len(over) == len(JUDGES):
            whys = ", ".join(reading.why or reading.end.value for reading in over)
            yield f"request {number} is read by neither: {whys}"
            return


def _asks_to_stay(read: Read) -> bool:
    """In words that judges may not hear: with a tab behind them, for one."""
    values = b",".join(value for name, value in read.headers if name.lower() == b"connection")
    options = {each.strip(b" \t").lower() for each in values.split(b",")}
    return b"keep-alive" in options and b"close" not in options


def _is_over(reading: Reading) -> bool:
    return reading.end is End.CLOSED or (reading.end is End.REFUSED and reading.why != BLANK)


def test_node_is_there_to_judge() -> None:
    if why_not():
        pytest.skip(why_not())
    whole = (
        b"POST /a?b HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n"
    )
    ends = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    readings = read_by_node([whole + FOLLOWER, whole[:-1], ends + FOLLOWER, whole + b"\0"])
    assert [len(reading.requests) for reading in readings] == [2, 0, 1, 1]
    assert [reading.end for reading in readings] == [End.WAITING, End.WAITING, End.CLOSED, End.REFUSED]
    assert readings[0].requests == read_by_h11(whole + FOLLOWER).requests
    # llhttp has heard of this one, and Node of none that is called so.
    [nameless] = read_by_node([whole + FOLLOWER.replace(b"GET", b"QUERY", 1)])
    assert (len(nameless.requests), nameless.end) == (1, End.REFUSED)


# --- how a case is cut, and what is made of it


def places(case: Case) -> list[int]:
    every = range(1, len(case.data) + 1)
    return list(every) if len(every) <= LONGEST else sorted(random.Random(case.name).sample(every, PLACES))


def mutated(seed: str) -> bytes:
    """A case with a few bytes changed, doubled, moved or left out; the same for the same seed."""
    chance = random.Random(seed)
    data = bytearray(chance.choice(CASES).data)
    for _ in range(chance.choice([1, 1, 2, 3])):
        at = chance.randrange(len(data))
        piece = bytes(data[at : at + chance.choice([1, 1, 2, 8, 40])])
        match chance.randrange(5):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                data[at:at] = bytes([chance.choice(malformed_bytes.EVERY)])
            case 2 if len(data) > len(piece):
                del data[at : at + len(piece)]
            case 3:
                data[at:at] = piece
            case _:
                to = chance.randrange(len(data))
                data[to:to] = piece
    return bytes(data)
