"""A case of the corpus: bytes, and what they must come to, exactly.

Not where the cases are: `malformed_bytes.py` and `malformed_rows.py` have those, as tables.
Invariant: a verdict leaves nothing open: each body that is served, and then one way to go on or to end.
"""

from __future__ import annotations

from dataclasses import dataclass

# Ways to go on behind what is served; a number is the status of a refusal, which ends the connection.
KEPT = "kept"  # the next request of the connection is answered
CLOSED = "closed"  # the answer ends the connection, and nothing behind it runs
WAITS = "waits"  # what follows is swallowed by a request that is not at its end

POST = b"POST /p HTTP/1.1\r\nHost: test\r\n"
LENGTH = b"Content-Length: 5\r\n\r\nhello"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"

DIGITS = b"0123456789"
LETTERS = bytes(range(0x41, 0x5B)) + bytes(range(0x61, 0x7B))
HEXADECIMAL = DIGITS + b"abcdefABCDEF"
# RFC 9110 §5.6.2 and §5.5.
TOKEN = DIGITS + LETTERS + b"!#$%&'*+-.^_`|~"
VISIBLE = bytes(range(0x21, 0x7F)) + bytes(range(0x80, 0x100))
BLANK = b" \t"
TEXT = BLANK + VISIBLE


@dataclass(frozen=True)
class Verdict:
    """What is served, body by body, and how it goes on."""

    end: str | int
    bodies: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Case:
    name: str
    data: bytes
    verdict: Verdict


def served(*bodies: bytes) -> Verdict:
    return Verdict(KEPT, bodies)


def refused(status: int, *before: bytes) -> Verdict:
    return Verdict(status, before)
