"""Requests as nobody should send them, made by a seed: a request in order, and odd bytes in odd places.

Not a fuzzer that learns: each case is made of its number alone, so a case that failed is made again by it.
Invariant: the same seed gives the same bytes, on any machine and any Python.
"""

from __future__ import annotations

import random
from collections.abc import Callable

# Methods that both judges know. HEAD is left out: its answer has no body to tell by.
METHODS = [b"GET", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH"]
TARGETS = [
    b"/",
    b"/a",
    b"/a/b?c=d&e",
    b"/a%20b",
    b"/%00",
    b"/%0d%0aX:%20y",
    b"//a//b",
    b"/a/../b/./c",
    b"/..;/a",
    b"/?",
    b"/a?b?c",
    b"http://test/",
    b"http://test/a?b",
    b"http://other:80/a",
]
NAMES = [b"X-One", b"x-two", b"Accept", b"Cookie", b"X_Three", b"a", b"Content-Type", b"Content_Length"]
VALUES = [
    b"1",
    b"a b",
    b"a, b",
    b'"q"',
    b"\xe9",
    b"",
    b"a:b",
    b"Content-Length: 3",
    b"chunked",
    b"a\tb",
    b"v" * 9000,
]
BODIES = [
    b"",
    b"a",
    b"hello",
    b"0\r\n\r\n",
    b"GET /inner HTTP/1.1\r\nHost: test\r\n\r\n",
    b"\r\n",
    b"\x00\xff\n",
    # More than is read at once.
    b"large " * 3000,
]
EXTENSIONS = [b"", b"", b"", b";a", b";a=b", b';a="b;c"', b" ;a", b"; a = b", b";"]
TRAILERS = [
    b"",
    b"",
    b"",
    b"X-T: 1\r\n",
    b"Content-Length: 5\r\n",
    b"Host: other\r\n",
    b"Transfer-Encoding: chunked\r\n",
]

# What is put where it does not belong.
ODD = [
    b" ",
    b"  ",
    b"\t",
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n ",
    b"\r\n\t",
    b"\n\r",
    b"\r\r\n",
    b"\r\n\r\n",
    b"\n\n",
    b"\x00",
    b"\x01",
    b"\x0b",
    b"\x0c",
    b"\x1b",
    b"\x1c",
    b"\x7f",
    b"\x80",
    b"\x85",
    b"\xa0",
    b"\xad",
    b"\xff",
    b"\xc3\xa9",
    b"\xd9\xa5",
    b",",
    b";",
    b":",
    b"::",
    b"+",
    b"-",
    b"0",
    b"0x",
    b"00",
    b"_",
    b'"',
    b"'",
    b"%",
    b"%00",
    b"%0d%0a",
    b"#",
    b"?",
    b"/",
    b"\\",
    b"..",
    b"*",
    b"@",
    b"[",
    b"]",
    b"{",
    b"|",
    b"^",
    b"`",
    b"<",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"HTTP/2.0",
    b"HTTP/0.9",
    b"http/1.1",
    b"chunked",
    b"identity",
    b"gzip",
    b"close",
    b"keep-alive",
    b"5",
    b"1",
    b"-0",
    b"18446744073709551616",
    b"99999999999999999999",
    b"ffffffffffffffff",
    b"a",
]
LINES = [
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding:chunked\r\n",
    b"Transfer-Encoding: Chunked\r\n",
    b"transfer-encoding:\tchunked \r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"Transfer-Encoding: chunked,\r\n",
    b"Transfer-Encoding: ,chunked\r\n",
    b"Transfer-Encoding:\r\n",
    b"Transfer-Encoding\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"Transfer_Encoding: chunked\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n",
    b"X: y\rTransfer-Encoding: chunked\r\n",
    b"X: y\nTransfer-Encoding: chunked\r\n",
    b"X:\r\n Transfer-Encoding: chunked\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 05\r\n",
    b"Content-Length: +5\r\n",
    b"Content-Length: -5\r\n",
    b"Content-Length: 5, 5\r\n",
    b"Content-Length: 5,6\r\n",
    b"Content-Length: 0x5\r\n",
    b"Content-Length: 5_0\r\n",
    b"Content-Length: 5 5\r\n",
    b"Content-Length:\r\n",
    b"Content-Length : 5\r\n",
    b"Content-Length\r\n",
    b"content-length:5\t\r\n",
    b"Host: other\r\n",
    b"Host:\r\n",
    b"Host: te st\r\n",
    b"Host: a/b\r\n",
    b"Host : test\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Connection: Content-Length\r\n",
    b"Connection: Transfer-Encoding, Host\r\n",
    b"Expect: 100-continue\r\n",
    b"Expect: y 100-continue\r\n",
    b"TE: trailers\r\n",
    b"Trailer: Content-Length\r\n",
    b": empty\r\n",
    b"no colon\r\n",
    b" leading: blank\r\n",
    b"\r\n",
]

# A request in parts, so that what is put in stands between two of them more often than inside of one.
Tokens = list[bytes]


def odd_request(seed: str) -> bytes:
    """One case: a request or two, some of its bytes not in order."""
    chance = random.Random(seed)
    tokens = _request(chance)
    if chance.random() < 0.2:
        tokens += _request(chance)
    for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3, 4])):
        chance.choice(MUTATIONS)(tokens, chance)
    return b"".join(tokens)


# --- what is in order


def _request(chance: random.Random) -> Tokens:
    method = chance.choice(METHODS)
    version = b"HTTP/1.0" if chance.random() < 0.08 else b"HTTP/1.1"
    tokens = [
        method,
        b" ",
        chance.choice(TARGETS),
        b" ",
        version,
        b"\r\n",
        b"Host",
        b":",
        b" ",
        b"test",
        b"\r\n",
    ]
    for _ in range(chance.choice([0, 0, 1, 2, 3])):
        tokens += [
            chance.choice(NAMES),
            b":",
            chance.choice([b" ", b"", b"\t", b"  "]),
            chance.choice(VALUES),
            b"\r\n",
        ]
    body = chance.choice(BODIES)
    kind = chance.random()
    if kind < 0.4 and version == b"HTTP/1.1":
        tokens += [b"Transfer-Encoding", b":", b" ", b"chunked", b"\r\n", b"\r\n"]
        tokens += _chunks(body, chance)
    elif kind < 0.8:
        tokens += [b"Content-Length", b":", b" ", b"%d" % len(body), b"\r\n", b"\r\n", body]
    else:
        tokens.append(b"\r\n")
    return tokens


def _chunks(body: bytes, chance: random.Random) -> Tokens:
    cut = chance.randint(0, len(body))
    tokens: Tokens = []
    for piece in filter(None, (body[:cut], body[cut:])):
        size = b"%x" % len(piece)
        tokens += [
            size.upper() if chance.random() < 0.5 else size,
            chance.choice(EXTENSIONS),
            b"\r\n",
            piece,
            b"\r\n",
        ]
    return [*tokens, b"0", chance.choice(EXTENSIONS), b"\r\n", chance.choice(TRAILERS), b"\r\n"]


# --- what is not


def _put_odd(tokens: Tokens, chance: random.Random) -> None:
    tokens.insert(chance.randint(0, len(tokens)), chance.choice(ODD))


def _put_any_byte(tokens: Tokens, chance: random.Random) -> None:
    tokens.insert(chance.randint(0, len(tokens)), bytes([chance.randrange(256)]))


def _put_inside(tokens: Tokens, chance: random.Random) -> None:
    at = chance.randrange(len(tokens))
    cut = chance.randint(0, len(tokens[at]))
    tokens[at] = tokens[at][:cut] + chance.choice(ODD) + tokens[at][cut:]


def _put_line(tokens: Tokens, chance: random.Random) -> None:
    ends = [at + 1 for at, token in enumerate(tokens) if token == b"\r\n"]
    tokens.insert(chance.choice(ends or [0]), chance.choice(LINES))


def _replace(tokens: Tokens, chance: random.Random) -> None:
    tokens[chance.randrange(len(tokens))] = chance.choice(ODD)


def _leave_out(tokens: Tokens, chance: random.Random) -> None:
    if len(tokens) > 1:
        del tokens[chance.randrange(len(tokens))]


def _double(tokens: Tokens, chance: random.Random) -> None:
    at = chance.randrange(len(tokens))
    tokens.insert(at, tokens[at])


def _swap(tokens: Tokens, chance: random.Random) -> None:
    one, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _change_case(tokens: Tokens, chance: random.Random) -> None:
    at = chance.randrange(len(tokens))
    tokens[at] = tokens[at].swapcase()


MUTATIONS: list[Callable[[Tokens, random.Random], None]] = [
    _put_odd,
    _put_any_byte,
    _put_inside,
    _put_line,
    _put_line,
    _put_line,
    _replace,
    _leave_out,
    _double,
    _swap,
    _change_case,
]
