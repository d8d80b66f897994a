"""Odd requests: whoever stands in front of Bridgehead reads them as it does. h11 and llhttp stand for those.

A quick slice of cases by default; `make differential` runs as many as `BRIDGEHEAD_TEST_DIFFERENTIAL` says.
Invariant: what is excused here is a short list, and each excuse says why nobody can be deceived by it.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator

import pytest
from harness import Server
from judges import JUDGES, End, Reading
from odd_requests import odd_request
from ours import FOLLOWER, read_by_us, read_in_parts

CASES = int(os.environ.get("BRIDGEHEAD_TEST_DIFFERENTIAL", "2000"))
SEED = os.environ.get("BRIDGEHEAD_TEST_SEED", "1")
# So many in one test: one that fails names its cases, and another process may have the next.
SLICE = 500
# One case of so many is cut at every byte, if it is not longer than this.
CUT_OF, LONGEST_CUT = 50, 600

# What one judge refuses and we do not, in its own words. The other has to read it as we do.
EXCUSED = {
    # Methods that llhttp has not heard of: HTTP has no closed list of them.
    ("llhttp", "Invalid method encountered"),
    ("llhttp", "Expected space after method"),
    ("llhttp", "Expected HTTP/, RTSP/ or ICE/"),
    # Blanks around an extension's name and an extension without one: h11 reads past them, as we do.
    ("llhttp", "Invalid character in chunk extensions"),
    ("llhttp", "Invalid character in chunk extensions name"),
    ("llhttp", "Invalid character in chunk extensions value"),
    ("llhttp", "Invalid character in chunk extensions quote value"),
    ("llhttp", "Invalid character in chunk extensions quoted value"),
    # A tab behind a coding: blanks are no part of a value.
    ("llhttp", "Request has invalid `Transfer-Encoding`"),
    # A length in the trailers, which nobody here ever looks at.
    ("llhttp", "Content-Length can't be present with Transfer-Encoding"),
    # An empty line before a request, which RFC 9112 §2.2 wants to be passed over.
    ("h11", "no request line received"),
}

# What both judges take and we refuse. docs/limits.md says why.
STRICTER = {
    "400 Bad Request: the Host header is not a host with an optional port",
    "400 Bad Request: the request target must begin with / or be an absolute URL without a user",
    '400 Bad Request: the request target has a raw ", <, >, `, #, control or non-ASCII byte: '
    "percent-encode it",
    "417 Expectation Failed: 100-continue is the only expectation understood",
    "501 Not Implemented: this method is not served",
    "400 Bad Request: one Transfer-Encoding was due, in HTTP/1.1",
    "505 HTTP Version Not Supported: HTTP/1.1 and HTTP/1.0 are understood",
    # Longer than is allowed here.
    "414 URI Too Long: the request target is longer than is allowed",
    "431 Request Header Fields Too Large: more header lines or bytes than are allowed",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("framing_app:app", "--no-access-log") as server:
        yield server


@pytest.mark.parametrize("first", range(0, CASES, SLICE))
def test_whoever_reads_odd_requests_strictly_reads_what_we_read(server: Server, first: int) -> None:
    complaints = []
    for number in range(first, min(first + SLICE, CASES)):
        name = f"{SEED}-{number}"
        data = odd_request(name) + FOLLOWER
        ours = read_by_us(server, data, random.Random(f"{name}, cut"))
        theirs = {judge: read(data) for judge, read in JUDGES.items()}
        complaints += [f"{name}: {each}\n    {data!r}" for each in compare(ours, theirs)]
    assert not complaints, "\n".join(complaints[:20])


def test_an_odd_request_is_read_the_same_wherever_it_is_cut(server: Server) -> None:
    complaints = []
    for number in range(CASES // CUT_OF):
        data = odd_request(f"{SEED}-{number}") + FOLLOWER
        if len(data) > LONGEST_CUT:
            continue
        whole = read_by_us(server, data)
        cuts = [(place,) for place in range(1, len(data))] + [tuple(range(1, len(data)))]
        for places in cuts:
            parts = read_in_parts(server, data, places)
            # hyper may look at half a head, and refuse it before we do: without our words.
            if (parts.requests, parts.end, parts.why[:3]) != (whole.requests, whole.end, whole.why[:3]):
                complaints.append(f"{SEED}-{number} cut at {places[:3]}: {parts}\n    not {whole}")
    assert not complaints, "\n".join(complaints[:20])


def compare(ours: Reading, theirs: dict[str, Reading]) -> Iterator[str]:
    for judge, reading in theirs.items():
        yield from _judged(ours, judge, reading)
    if all(len(reading.requests) > len(ours.requests) for reading in theirs.values()):
        if ours.end is not End.REFUSED:
            yield f"both read {len(ours.requests) + 1} requests or more, and we {len(ours.requests)}"
        elif ours.why not in STRICTER:
            yield f"both take what we refuse: {ours.why or 'without a word'}"

    if all(_ends_before(reading, ours) for reading in theirs.values()):
        yield "both end the connection before the last request that is read here"


def _ends_before(reading: Reading, ours: Reading) -> bool:
    return reading.end is End.CLOSED and len(reading.requests) < len(ours.requests)


def _judged(ours: Reading, judge: str, reading: Reading) -> Iterator[str]:
    """What one judge has against how we read."""
    for number, read in enumerate(ours.requests):
        if number < len(reading.requests):
            other = reading.requests[number]
            if read.framing != other.framing:
                yield f"request {number} is {read.framing} here, and {other.framing} to {judge}"
            elif read.meaning != other.meaning:
                yield f"request {number} has {read.meaning} here, and {other.meaning} to {judge}"
            continue
        if reading.end is End.WAITING:
            yield f"{judge} still waits for what is request {number} here"
        elif reading.end is End.REFUSED and (judge, re.sub(r": bytearray.*", "", reading.why)) not in EXCUSED:
            yield f"{judge} refuses request {number}: {reading.why}"
        return


def test_the_same_seed_makes_the_same_request() -> None:
    assert odd_request("1-1") == odd_request("1-1")
    assert len({odd_request(f"1-{number}") for number in range(500)}) > 480


@pytest.mark.parametrize("judge", JUDGES)
def test_a_judge_reads_what_is_in_order_and_refuses_what_is_not(judge: str) -> None:
    read = JUDGES[judge]
    body = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    whole = read(b"POST /a?b HTTP/1.1\r\nHost: test\r\n" + body + FOLLOWER)
    assert [each.framing for each in whole.requests] == [
        (b"POST", b"/a?b", b"abc"),
        (b"GET", b"/behind", b""),
    ]
    assert whole.end is End.WAITING
    assert read(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n" + FOLLOWER).end is End.CLOSED
    assert read(b"GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 5, 6\r\n\r\nhello").end is End.REFUSED
