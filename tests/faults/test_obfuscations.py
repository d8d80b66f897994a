"""Ways to disguise a Transfer-Encoding by one byte or two: refused, or what RFC 9112 makes of it.

The table is a function: `meant` says what a line is, by the grammar alone.
Invariant: a line that is no header is refused, and one that is another header changes nothing.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

import pytest
from harness import Client, Server

TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# RFC 9110 §5.5: visible, blanks between, and bytes beyond ASCII.
VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
NAME, CODING = b"Transfer-Encoding", b"chunked"
PLACES = [
    b"%bTransfer-Encoding: chunked",
    b"Transfer-Encoding%b: chunked",
    b"Transfer%bEncoding: chunked",
    b"Transfer-Enc%boding: chunked",
    b"Transfer-Encoding:%bchunked",
    b"Transfer-Encoding: %bchunked",
    b"Transfer-Encoding: chunked%b",
    b"Transfer-Encoding: chun%bked",
]
# What is put in together: what some parser strips, joins, splits or folds.
PAIRS = [b" ", b"\t", b"\r", b"\n", b"\x0b", b"\x0c", b"\x00", b",", b";", b"\x85", b"\xa0"]
REFUSED, CHUNKED, ANOTHER = "refused", "chunked", "another header"


def lines() -> Iterator[bytes]:
    for place in PLACES:
        for byte in range(256):
            yield place % bytes([byte])
        for one in PAIRS:
            for other in PAIRS:
                yield place % (one + other)
    for name in (NAME.lower(), NAME.upper(), NAME.swapcase(), NAME.title()):
        yield name + b": chunked"


def meant(line: bytes) -> str:
    """What a head with this line comes to. The line may be several, or the rest of another."""
    if line.startswith(b"\r\n"):
        return ANOTHER  # the head ends before it
    for part in line.split(b"\r\n"):
        name, colon, value = part.partition(b":")
        if not colon or not TOKEN.fullmatch(name) or not VALUE.fullmatch(value):
            return REFUSED
        if name.lower() == NAME.lower() and value.strip(b" \t").lower() != CODING:
            return REFUSED
    return CHUNKED if any(is_coding(part) for part in line.split(b"\r\n")) else ANOTHER


def is_coding(line: bytes) -> bool:
    name, _, _ = line.partition(b":")
    return name.lower() == NAME.lower()


ALL = sorted(set(lines()))
SLICES = 8


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("corpus_app:app", "--no-access-log") as server:
        yield server


@pytest.mark.parametrize("part", range(SLICES))
def test_a_disguised_coding_is_refused_or_read_as_the_rfc_says(server: Server, part: int) -> None:
    wrong = []
    for line in ALL[part::SLICES]:
        due, came = meant(line), comes_to(server, line)
        if due != came:
            wrong.append(f"{line!r}: {due} was due, and it was {came}")
    assert not wrong, "\n".join(wrong)


def comes_to(server: Server, line: bytes) -> str:
    """Whether the body, which is one in chunks, was read as one."""
    with server.connect() as client:
        client.send(b"POST /echo HTTP/1.1\r\nHost: test\r\n%b\r\n\r\n5\r\nhello\r\n0\r\n\r\n" % line)
        client.half_close_quietly()
        first = client.read_response()
        if first.status != 200:
            assert first.status in (400, 501), first
            client.assert_closed()
            return REFUSED
        return CHUNKED if first.body == b"hello" else _another(client)


def _another(client: Client) -> str:
    # Without a length there is no body, and `5` begins no request.
    assert client.read_response().status == 400
    client.assert_closed()
    return ANOTHER


def test_there_are_more_disguises_than_the_known_collections_have() -> None:
    assert len(ALL) > 134 + 668 + 966
    assert {meant(line) for line in ALL} == {REFUSED, CHUNKED, ANOTHER}
    assert all(
        meant(NAME + b": " + bytes([byte]) + CODING) == REFUSED for byte in string.punctuation.encode()
    )
