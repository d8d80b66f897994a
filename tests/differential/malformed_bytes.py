"""One byte where it does not belong: each of them in each place of a request, and what comes of it.

The tables say what the grammar of RFC 9110 and RFC 9112 says, and docs/limits.md where we are stricter.
Invariant: whatever a table does not name is refused with 400.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from case import (
    BLANK,
    CHUNKED,
    CLOSED,
    DIGITS,
    HEXADECIMAL,
    LAST,
    LENGTH,
    LETTERS,
    POST,
    TEXT,
    TOKEN,
    VISIBLE,
    WAITS,
    Case,
    Verdict,
    refused,
    served,
)

# All that mean something to some parser, and some of those that mean nothing.
EVERY = (
    bytes(range(0x21))
    + b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\x7f"
    + DIGITS
    + b"afAFgGxXzZ"
    + b"\x80\x85\xa0\xad\xc2\xff"
)
HOLE = b"<>"
HELLO = served(b"hello")
# What URLs have, and what is seen in them all the same.
PATH = DIGITS + LETTERS + b"!$%&'*+-.^_|~(),/:;=@[\\]{}\"?"
QUERY = DIGITS + LETTERS + b"!$%&'*+-.^_|~(),/:;=@[\\]{}`?"
# `reg-name` without its comma; an escape would need two more letters.
NAME = DIGITS + LETTERS + b"-._~!$&'()*+;="
LOWER = bytes(range(0x61, 0x7B))


@dataclass(frozen=True)
class Place:
    """Where a byte is put, and with which nothing changes."""

    name: str
    before: bytes
    behind: bytes
    harmless: bytes
    # What becomes of some others.
    others: Mapping[bytes, Verdict] = field(default_factory=dict)
    # Whose verdict depends on what comes much later.
    left_out: bytes = b""

    def cases(self) -> Iterator[Case]:
        for byte in EVERY:
            if byte not in self.left_out:
                one = bytes([byte])
                name = f"{self.name} {byte:02x}"
                yield Case(name, self.before + one + self.behind, self._verdict(byte))

    def _verdict(self, byte: int) -> Verdict:
        for group, verdict in self.others.items():
            if byte in group:
                return verdict
        return HELLO if byte in self.harmless else refused(400)


def line(name: str, around: bytes, harmless: bytes, others: Mapping[bytes, Verdict] | None = None) -> Place:
    """In the request line; `<>` is the place."""
    before, _, behind = around.partition(HOLE)
    return Place(name, before, behind + b"Host: test\r\n" + LENGTH, harmless, others or {})


def header(name: str, around: bytes, harmless: bytes, others: Mapping[bytes, Verdict] | None = None) -> Place:
    """In a header line before the length's."""
    before, _, behind = around.partition(HOLE)
    return Place(name, POST + before, behind + LENGTH, harmless, others or {})


def host(name: str, around: bytes, harmless: bytes) -> Place:
    before, _, behind = around.partition(HOLE)
    return Place(name, b"POST /p HTTP/1.1\r\nHost: " + before, behind + b"\r\n" + LENGTH, harmless)


def chunk(name: str, around: bytes, harmless: bytes, others: Mapping[bytes, Verdict] | None = None) -> Place:
    """In a body of chunks."""
    before, _, behind = around.partition(HOLE)
    return Place(name, POST + CHUNKED + before, behind, harmless, others or {})


REQUEST_LINES = [
    line("in a method", b"PO<>T /p HTTP/1.1\r\n", TOKEN, {LOWER: refused(501)}),
    line("before a method", b"<>POST /p HTTP/1.1\r\n", TOKEN, {LOWER: refused(501)}),
    line("behind a method", b"POST<>/p HTTP/1.1\r\n", b" "),
    line("before a target", b"POST <>p HTTP/1.1\r\n", b"/"),
    line("in a path", b"POST /a<>b HTTP/1.1\r\n", PATH),
    line("in a query", b"POST /a?b<>c HTTP/1.1\r\n", QUERY),
    line("behind a target", b"POST /p<>HTTP/1.1\r\n", b" "),
    line("before a version", b"POST /p <>TTP/1.1\r\n", b""),
    line("in a version", b"POST /p HTTP<>1.1\r\n", b"/"),
    line("major", b"POST /p HTTP/<>.1\r\n", b"1", {b"023456789": refused(505)}),
    line(
        "minor",
        b"POST /p HTTP/1.<>\r\n",
        b"1",
        {b"0": Verdict(CLOSED, (b"hello",)), b"23456789": refused(505)},
    ),
    line("the line's carriage return", b"POST /p HTTP/1.1<>\n", b"\r"),
    line("the line's line feed", b"POST /p HTTP/1.1\r<>", b"\n"),
]

HEADER_LINES = [
    header("before a name", b"<>X: v\r\n", TOKEN),
    header("in a name", b"X-A<>B: v\r\n", TOKEN + b":"),
    header("behind a name", b"X<>: v\r\n", TOKEN + b":"),
    header("before a value", b"X:<>v\r\n", TEXT),
    header("in a value", b"X: a<>b\r\n", TEXT),
    header("behind a value", b"X: v<>\r\n", TEXT),
    header("a header's carriage return", b"X: v<>\n", b"\r"),
    header("a header's line feed", b"X: v\r<>Y: z\r\n", b"\n"),
    Place("the head's carriage return", POST + b"Content-Length: 5\r\n", b"\nhello", b"\r"),
    Place("the head's line feed", POST + b"Content-Length: 5\r\n\r", b"hello", b"\n"),
    host("before a host", b"<>test", NAME + BLANK),
    host("in a host", b"te<>st", NAME),
    host("behind a host", b"test<>", NAME + BLANK + b":"),
    host("behind a port", b"test:8<>", DIGITS + BLANK),
]

FRAMINGS = [
    Place(
        "before a length",
        POST + b"Content-Length: ",
        b"5\r\n\r\nhello",
        BLANK + b"0",
        left_out=b"123456789",
    ),
    Place(
        "behind a length",
        POST + b"Content-Length: 5",
        b"\r\n\r\nhello",
        BLANK,
        {DIGITS: Verdict(WAITS)},
    ),
    header("in a length's name", b"Content<>Length: 3\r\n", TOKEN + b":", {b"-": refused(400)}),
    header("before a coding's name", b"<>Transfer-Encoding: chunked\r\n", TOKEN),
    header("in a coding's name", b"Transfer<>Encoding: chunked\r\n", TOKEN + b":", {b"-": refused(400)}),
    header("behind a coding's name", b"Transfer-Encoding<>: chunked\r\n", TOKEN, {b":": refused(501)}),
    *(
        Place(
            f"{where} a coding",
            POST + b"Transfer-Encoding: " + before,
            behind + b"\r\n\r\n5\r\nhello\r\n" + LAST,
            harmless,
            # An empty element of a list is no coding; another text is an unknown one.
            {empty: refused(400), BLANK: HELLO if harmless else refused(501), TEXT: refused(501)},
        )
        for where, before, behind, harmless, empty in (
            ("before", b"", b"chunked", BLANK, b","),
            ("in", b"chun", b"ked", b"", b""),
            ("behind", b"chunked", b"", BLANK, b","),
        )
    ),
]

CHUNKS = [
    Place(
        "before a size",
        POST + CHUNKED,
        b"5\r\nhello\r\n" + LAST,
        b"0",
        left_out=HEXADECIMAL.replace(b"0", b""),
    ),
    chunk(
        "behind a size",
        b"5<>\r\nhello\r\n" + LAST,
        b";",
        {HEXADECIMAL: Verdict(WAITS)},
    ),
    chunk("before an extension", b"5;<>\r\nhello\r\n" + LAST, TEXT),
    chunk("in an extension", b"5;a<>b\r\nhello\r\n" + LAST, TEXT),
    chunk("in quotes", b'5;a="b<>c"\r\nhello\r\n' + LAST, TEXT),
    chunk("a size's carriage return", b"5<>\nhello\r\n" + LAST, b"\r"),
    chunk("a size's line feed", b"5\r<>hello\r\n" + LAST, b"\n"),
    chunk("a chunk's carriage return", b"5\r\nhello<>\n" + LAST, b"\r"),
    chunk("a chunk's line feed", b"5\r\nhello\r<>" + LAST, b"\n"),
    chunk("behind the last size", b"5\r\nhello\r\n0<>\r\n\r\n", b"0;"),
    chunk("the last carriage return", b"5\r\nhello\r\n0\r\n<>\n", b"\r"),
    chunk("the last line feed", b"5\r\nhello\r\n0\r\n\r<>", b"\n"),
    chunk("before a trailer's name", b"5\r\nhello\r\n0\r\n<>X: v\r\n\r\n", TOKEN),
    chunk("in a trailer's name", b"5\r\nhello\r\n0\r\nX<>Y: v\r\n\r\n", TOKEN + b":"),
    chunk("behind a trailer's name", b"5\r\nhello\r\n0\r\nX<>: v\r\n\r\n", TOKEN + b":"),
    chunk("in a trailer", b"5\r\nhello\r\n0\r\nX: a<>b\r\n\r\n", TEXT),
    chunk("a trailer's carriage return", b"5\r\nhello\r\n0\r\nX: v<>\n\r\n", b"\r"),
    chunk("a trailer's line feed", b"5\r\nhello\r\n0\r\nX: v\r<>\r\n", b"\n"),
]

ENDS = Verdict(CLOSED, (b"hello",))
OPTIONS = [
    header("before close", b"Connection: <>close\r\n", TEXT, {BLANK + b",": ENDS}),
    header("behind close", b"Connection: close<>\r\n", TEXT, {BLANK + b",": ENDS}),
    header("before close in a list", b"Connection: a<>close\r\n", TEXT, {b",": ENDS}),
    header("before an expectation", b"Expect: <>100-continue\r\n", BLANK, {VISIBLE: refused(417)}),
    header("behind an expectation", b"Expect: 100-continue<>\r\n", BLANK, {VISIBLE: refused(417)}),
    Place(
        "behind keep-alive",
        b"POST /p HTTP/1.0\r\nConnection: keep-alive",
        b"\r\n" + LENGTH,
        BLANK + b",",
        {VISIBLE.replace(b",", b""): ENDS},
    ),
]

PLACES = [*REQUEST_LINES, *HEADER_LINES, *FRAMINGS, *CHUNKS, *OPTIONS]
