"""Whole lines, lengths and bodies that are not in order, and those beside them that are: what each comes to.

Tables, as `malformed_bytes.py` has them for a single byte. A name in `wrong` is a row that is refused.
Invariant: each row says what is due, and no row is due to what the server was seen to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from case import CHUNKED, CLOSED, KEPT, LAST, LENGTH, POST, WAITS, Case, Verdict, refused, served

HELLO = served(b"hello")
ENDS = Verdict(CLOSED, (b"hello",))
OK = 0

# What a value comes to where it is the only one: OK, or the status of its refusal.
LENGTHS = {
    b"5": OK,
    b"05": OK,
    b" 5\t": OK,
    b"+5": 400,
    b"-0": 400,
    b"0x5": 400,
    b"5_0": 400,
    b"5,5": 400,
    b"5, 6": 400,
    b"5 5": 400,
    b"5;": 400,
    b"": 400,
    b"\xd9\xa5": 400,
    b"99999999999999999999": 400,
    b"9223372036854775808": 413,
}
CODINGS = {
    b"chunked": OK,
    b"\tCHUNKED ": OK,
    b"gzip": 501,
    b"identity": 501,
    b"gzip, chunked": 501,
    b"chunked, gzip": 501,
    b"chunked, chunked": 501,
    b"chunked;q=1": 501,
    b'"chunked"': 501,
    b"": 400,
    b",chunked": 400,
    b"chunked,": 400,
    b"\x0bchunked": 400,
}


def framings() -> Iterator[Case]:
    """Two lines that say where a body ends. The first wrong one decides; two right ones are one too many."""
    lengths = [(b"Content-Length:" + value, status) for value, status in LENGTHS.items()]
    codings = [(b"Transfer-Encoding:" + value, status) for value, status in CODINGS.items()]
    for (one, first), (other, second) in (
        *product(lengths, lengths),
        *product(lengths, codings),
        *product(codings, lengths),
        *product(codings, codings),
    ):
        both_codings = one.startswith(b"T") and other.startswith(b"T")
        # Whatever a second coding is, it is a second one.
        status = first or (400 if both_codings else second) or 400
        data = POST + one + b"\r\n" + other + b"\r\n\r\n5\r\nhello\r\n" + LAST
        yield Case(f"{one.decode('latin-1')} & {other.decode('latin-1')}", data, refused(status))
    for value in CODINGS:
        data = b"POST /p HTTP/1.0\r\nTransfer-Encoding:" + value + b"\r\n\r\n" + LAST
        yield Case(f"1.0 {value.decode('latin-1')}", data, refused(400))


BODIES = {
    "nothing": b"",
    "hello": b"hello",
    "a request": b"GET /inner HTTP/1.1\r\nHost: test\r\n\r\n",
    "a last chunk": LAST,
    "every byte": bytes(range(256)),
}
CONNECTIONS = {
    b"": {"1.0": CLOSED, "1.1": KEPT},
    b"Connection: close\r\n": {"1.0": CLOSED, "1.1": CLOSED},
    b"Connection: keep-alive\r\n": {"1.0": KEPT, "1.1": KEPT},
    b"Connection: Keep-Alive, Close\r\n": {"1.0": CLOSED, "1.1": CLOSED},
    b"Connection: close\r\nConnection: keep-alive\r\n": {"1.0": CLOSED, "1.1": CLOSED},
    b"Connection: keep-alive\r\nConnection: close\r\n": {"1.0": CLOSED, "1.1": CLOSED},
    b"Connection: X, CLOSE ,\r\n": {"1.0": CLOSED, "1.1": CLOSED},
    b"Connection: close, \x80\r\n": {"1.0": CLOSED, "1.1": CLOSED},
    b"Connection: \xff\r\nConnection: \xe4 ,\tClose\r\n": {"1.0": CLOSED, "1.1": CLOSED},
    b"Connection: close\xa0\r\n": {"1.0": CLOSED, "1.1": KEPT},
    b"Connection: closed\r\n": {"1.0": CLOSED, "1.1": KEPT},
    b"Connection: \r\n": {"1.0": CLOSED, "1.1": KEPT},
    b"Connection: Content-Length, Transfer-Encoding, Host\r\n": {"1.0": CLOSED, "1.1": KEPT},
    b"Proxy-Connection: close\r\n": {"1.0": CLOSED, "1.1": KEPT},
    b"Keep-Alive: timeout=0\r\n": {"1.0": CLOSED, "1.1": KEPT},
}


def in_order() -> Iterator[Case]:
    """What is right, with each way to end a connection: the bytes of a body are its own."""
    for (connection, ends), version, method in product(
        CONNECTIONS.items(), ("1.0", "1.1"), ("GET", "POST", "DELETE")
    ):
        head = f"{method} /p HTTP/{version}\r\nHost: test\r\n".encode() + connection
        for kind, body in BODIES.items():
            for framing, data in _framed(body, version):
                name = f"{method} {version} {connection.decode('latin-1')!r} {kind} {framing}"
                yield Case(name, head + data, Verdict(ends[version], (body,)))


def _framed(body: bytes, version: str) -> Iterator[tuple[str, bytes]]:
    yield "by length", b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    if version == "1.0":
        return
    half = len(body) // 2
    whole = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    yield "in a chunk", CHUNKED + whole + LAST
    if half:
        parts = b"%03X;a\r\n%b\r\n%x\r\n%b\r\n" % (half, body[:half], len(body) - half, body[half:])
        yield "in two chunks", CHUNKED + parts + b"0;b=c\r\nX: y\r\nContent-Length: 5\r\n\r\n"


REQUEST_LINES = {
    b"GET /p": 400,
    b"GET": 400,
    b"": 400,
    b"GET  HTTP/1.1": 400,
    b"GET HTTP/1.1": 400,
    b"/p HTTP/1.1": 400,
    b"GET /p HTTP/1.1 ": 400,
    b" GET /p HTTP/1.1": 400,
    b"GET  /p HTTP/1.1": 400,
    b"GET /p  HTTP/1.1": 400,
    b"GET /p /q HTTP/1.1": 400,
    b"GET\t/p\tHTTP/1.1": 400,
    b"GET /p http/1.1": 400,
    b"GET /p Http/1.1": 400,
    b"GET /p HTTP/1": 400,
    b"GET /p HTTP/11": 400,
    b"GET /p HTTP/1.10": 400,
    b"GET /p HTTP/01.1": 400,
    b"GET /p HTTP/1.1.1": 400,
    b"GET /p HTTP/1,1": 400,
    b"GET /p HTTP/+1.1": 400,
    b"GET /p HTTP/4294967297.1": 400,
    b"GET /p HTTP 1.1": 400,
    b"GET /p HTTPS/1.1": 400,
    b"GET /p ICE/1.0": 400,
    b"GET /p RTSP/1.0": 400,
    b"GET /p SIP/2.0": 400,
    b"GET /p HTTP/0.9": 505,
    b"GET /p HTTP/1.2": 505,
    b"GET /p HTTP/1.9": 505,
    b"GET /p HTTP/2.0": 505,
    b"GET /p HTTP/3.0": 505,
    b"GET /p HTTP/9.9": 505,
    b"get /p HTTP/1.1": 501,
    b"Get /p HTTP/1.1": 501,
    b"GEt /p HTTP/1.1": 501,
    b"CONNECT test:80 HTTP/1.1": 501,
    b"CONNECT /p HTTP/1.1": 501,
    b"TRACE /p HTTP/1.1": 501,
    b"TRACE * HTTP/1.1": 501,
    b"M" * 33 + b" /p HTTP/1.1": 501,
    b"GET * HTTP/1.1": 400,
    b"GET p HTTP/1.1": 400,
    b"GET ?p HTTP/1.1": 400,
    b"GET #p HTTP/1.1": 400,
    b"GET /p#f HTTP/1.1": 400,
    b"GET ../p HTTP/1.1": 400,
    b"GET test:80 HTTP/1.1": 400,
    b"GET test:80/p HTTP/1.1": 400,
    b"GET ://test/p HTTP/1.1": 400,
    b"GET http:/p HTTP/1.1": 400,
    b"GET http:///p HTTP/1.1": 400,
    b"GET http:// HTTP/1.1": 400,
    b"GET ftp://test/p HTTP/1.1": 400,
    b"GET ws://test/p HTTP/1.1": 400,
    b"GET file:///p HTTP/1.1": 400,
    b"GET http://user@test/p HTTP/1.1": 400,
    b"GET http://user:word@test/p HTTP/1.1": 400,
    b"GET http://te st/p HTTP/1.1": 400,
    b"GET http://test:port/p HTTP/1.1": 400,
    b"GET http://test:65536/p HTTP/1.1": 400,
    b"GET http://[::1/p HTTP/1.1": 400,
    b"GET http://te\\st/p HTTP/1.1": 400,
    b"GET http://test/\x80 HTTP/1.1": 400,
    b"GET http://test/p#f HTTP/1.1": 400,
    b"GET /\xc3\xa9 HTTP/1.1": 400,
    b"GET /p\x00 HTTP/1.1": 400,
    b"GET /" + b"p" * 8191 + b" HTTP/1.1": OK,
    b"GET /" + b"p" * 8192 + b" HTTP/1.1": 414,
    b"M" * 32 + b" /p HTTP/1.1": OK,
    b"GET /p HTTP/1.1": OK,
    b"GET // HTTP/1.1": OK,
    b"GET /? HTTP/1.1": OK,
    b"GET /??p HTTP/1.1": OK,
    b"GET /%00%0d%0a%zz% HTTP/1.1": OK,
    b"GET /../p/./q/ HTTP/1.1": OK,
    b"GET http://test/p HTTP/1.1": OK,
    b"GET HTTP://TEST:80?p HTTP/1.1": OK,
    b"GET https://[::1]:1/p HTTP/1.1": OK,
    b"OPTIONS * HTTP/1.1": OK,
    b"OPTIONS /p HTTP/1.1": OK,
}
HEADER_LINES = {
    b"X": 400,
    b"X Y": 400,
    b": v": 400,
    b" : v": 400,
    b"X : v": 400,
    b"X\t: v": 400,
    b"X Y: v": 400,
    b" X: v": 400,
    b"\tX: v": 400,
    b"X: v\r\n w": 400,
    b"X: v\r\n\tw": 400,
    b"X:\r\n w": 400,
    b"X: v\r\n \r\nY: z": 400,
    b"X: v\nY: z": 400,
    b"X: v\rY: z": 400,
    b"X: v\r\r\nY: z": 400,
    b"X: v\n\r\nY: z": 400,
    b"X: v\n\nGET /inner HTTP/1.1": 400,
    b"X: v\r\rGET /inner HTTP/1.1": 400,
    b"X: \x00": 400,
    b"X\x00: v": 400,
    b"\xefX: v": 400,
    b"\xef\xbb\xbfX: v": 400,
    b"(X): v": 400,
    b"X/Y: v": 400,
    b'"X": v': 400,
    b"Host: test": 400,
    b"Host: other": 400,
    b"host:": 400,
    b"HOST: test": 400,
    b"Expect: y": 417,
    b"Expect: 100-continue, y": 417,
    b"Expect:": 417,
    b"Expect: 100-continue\r\nExpect: y": 417,
    b"X:": OK,
    b"X: \t": OK,
    b"X:v": OK,
    b'X: a:b;c="d", e': OK,
    b"X: \xff": OK,
    b"!#$%&'*+-.^_`|~: v": OK,
    b"X: v\r\nX: v\r\nx: w": OK,
    b"Transfer_Encoding: chunked": OK,
    b"TransferEncoding: chunked": OK,
    b"Transfer-Encoding-: chunked": OK,
    b"Content_Length: 6": OK,
    b"Content-Length-: 6": OK,
    b"X: Content-Length: 6": OK,
    b"X-Host: other": OK,
    b"Expect: 100-Continue": OK,
    b"Upgrade: h2c": OK,
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__": OK,
    b"TE: trailers, chunked": OK,
    b"Trailer: Content-Length": OK,
    b"X: " + b"v" * 16381: OK,
    b"X: " + b"v" * 16382: 431,
    b"\r\n".join([b"X: v"] * 98): OK,
    b"\r\n".join([b"X: v"] * 99): 431,
}
HOSTS = {
    **dict.fromkeys(
        (b"test", b"test:80", b"test:", b"TEST.example.", b"127.0.0.1:1", b"[::1]", b"[::1]:65535", b"a_b"),
        OK,
    ),
    **dict.fromkeys(
        (
            b"user@test", b"a:b@test", b"test/p", b"/", b"test?x", b"test#x", b"te st", b"a,b", b"a, b",
            b"te\\st", b"http://test", b"[::1", b"::1]", b"::1", b"[]", b"[x]", b"[::1]x", b"[::1]:x",
            b"test:80a", b"test:+80", b"test:-1", b"test:65536", b"test:99999999999999999999", b"a:80:80",
            b":80", b":", b'te"st', b"<a>", b"te^st", b"te|st", b"te`st", b"{a}", b"t\xc3\xa9st", b"te%2",
            b"te%zz", b"te\tst", b"te\x00st", b"te\x0bst",
        ),
        400,
    ),
}  # fmt: skip


def lines() -> Iterator[Case]:
    """One line that is not in order, or unusual."""
    for first, status in REQUEST_LINES.items():
        data = first + b"\r\nHost: test\r\n\r\n"
        yield Case(f"first line {_short(first)}", data, _judged(status, b""))
    for line, status in HEADER_LINES.items():
        yield Case(f"line {_short(line)}", POST + line + b"\r\n" + LENGTH, _judged(status, b"hello"))
    for (value, status), version in product(HOSTS.items(), ("1.0", "1.1")):
        data = (
            f"POST /p HTTP/{version}\r\nConnection: keep-alive\r\nHost: ".encode() + value + b"\r\n" + LENGTH
        )
        yield Case(f"{version} host {_short(value)}", data, _judged(status, b"hello"))
    yield Case("no host", b"POST /p HTTP/1.1\r\n" + LENGTH, refused(400))
    for blanks in range(8):
        data = b"\r\n" * blanks + POST + LENGTH
        yield Case(f"{blanks} empty lines", data, HELLO if blanks <= 4 else refused(400))
    for odd in (
        b"\n",
        b"\r",
        b"\r\r\n",
        b"\n\r",
        b" \r\n",
        b"\x00",
        b"\x16\x03\x01",
        b"\xef\xbb\xbf",
        b"HTTP/1.1 200 OK\r\n",
    ):
        yield Case(f"{_short(odd)} before a request", odd + POST + LENGTH, refused(400))


CHUNKS: dict[bytes, int | str] = {
    b"5\r\nhello\r\n0\r\n\r\n": OK,
    b"05\r\nhello\r\n00\r\n\r\n": OK,
    b"0" * 15 + b"5\r\nhello\r\n" + b"0" * 16 + b"\r\n\r\n": OK,
    b"0" * 16 + b"5\r\nhello\r\n0\r\n\r\n": 400,
    b"0" * 20 + b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n": 400,
    b"5\r\nhello\r\n" + b"0" * 17 + b"\r\n\r\n": 400,
    b"1\r\nh\r\n4\r\nello\r\n0\r\n\r\n": OK,
    b"5;" + b"e" * 270 + b"\r\nhello\r\n0\r\n\r\n": OK,
    b"5;" + b"e" * 271 + b"\r\nhello\r\n0\r\n\r\n": 400,
    b'5;a="b\\"c";d\r\nhello\r\n0\r\n\r\n': OK,
    b"5; a = b ;c\r\nhello\r\n0\r\n\r\n": OK,
    b"5 ;a\r\nhello\r\n0\r\n\r\n": 400,
    b"5\r\nhello\r\n0 \r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nX: y\r\nX: z\r\n\r\n": OK,
    b"5\r\nhello\r\n0\r\n" + b"X: y\r\n" * 32 + b"\r\n": OK,
    b"5\r\nhello\r\n0\r\n" + b"X: y\r\n" * 33 + b"\r\n": 400,
    b"5\r\nhello\r\n0\r\nX: " + b"y" * 8187 + b"\r\n\r\n": OK,
    b"5\r\nhello\r\n0\r\nX: " + b"y" * 8188 + b"\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nX\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\n: y\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nX : y\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\n X: y\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nX: y\nZ: a\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nX: y\r\n\n": 400,
    b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nTransfer-Encoding : chunked\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n": OK,
    b"5\r\nhello\r\n0\r\nContent-Length: +5\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nHost: other\r\nConnection: close\r\n\r\n": OK,
    b"5\r\nhello\r\n\r\n": 400,
    b"5\r\nhello\r\n0\r\nGET /inner HTTP/1.1\r\nHost: test\r\n\r\n": 400,
    b"5\r\nhello0\r\n\r\n": 400,
    b"5\r\nhelloXX0\r\n\r\n": 400,
    b"5\r\nhello\r\n\r\n0\r\n\r\n": 400,
    b"\r\n5\r\nhello\r\n0\r\n\r\n": 400,
    b"5\r\n\r\nhello\r\n0\r\n\r\n": 400,
    b"0x5\r\nhello\r\n0\r\n\r\n": 400,
    b"5h\r\nhello\r\n0\r\n\r\n": 400,
    b"5,5\r\nhello\r\n0\r\n\r\n": 400,
    b"-5\r\nhello\r\n0\r\n\r\n": 400,
    b"5.0\r\nhello\r\n0\r\n\r\n": 400,
    b"\xd9\xa5\r\nhello\r\n0\r\n\r\n": 400,
    b"10000000000000000\r\nhello\r\n0\r\n\r\n": 400,
    b"10000000000000005\r\nhello\r\n0\r\n\r\n": 400,
    b"5\r\nhello\r\nffffffffffffffff\r\n0\r\n\r\n": 400,
    b"5" * 40 + b"\r\nhello\r\n0\r\n\r\n": 400,
    b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n': 400,
    b"5;a\r;b\r\nhello\r\n0\r\n\r\n": 400,
    b"5;a\n\r\nhello\r\n0\r\n\r\n": 400,
    **{b"%x\r\nhello\r\n0\r\n\r\n" % size: 400 for size in (*range(5), *range(6, 13))},
    **{b"%x\r\nhello\r\n0\r\n\r\n" % size: WAITS for size in (64, 4096, 2**31, 2**32, 2**32 + 5, 2**62)},
}


def chunks() -> Iterator[Case]:
    for body, status in CHUNKS.items():
        yield Case(f"chunks {_short(body)}", POST + CHUNKED + body, _judged(status, b"hello"))
    # A length too small or too large: the rest of a body is the next request, or that one is the rest of it.
    for length in range(5):
        data = POST + b"Content-Length: %d\r\n\r\nhello" % length
        # What is left and the next request's line begin with lower letters.
        yield Case(f"length {length} of 5", data, refused(501, b"hello"[:length]))
    for length in (50, 500, 100 * 1024 * 1024):
        data = POST + b"Content-Length: %d\r\n\r\nhello" % length
        yield Case(f"length {length}", data, Verdict(WAITS))
    for length in (100 * 1024 * 1024 + 1, 2**31, 2**32 + 5, 2**63 - 1):
        data = POST + b"Content-Length: %d\r\n\r\nhello" % length
        yield Case(f"length {length}", data, refused(413))


# What is refused by itself is refused behind what is served, and takes nothing of it along.
BEFORE = {
    "a head": (b"GET /a HTTP/1.1\r\nHost: test\r\n\r\n", b""),
    "a length": (POST + b"Content-Length: 3\r\n\r\nabc", b"abc"),
    "chunks": (POST + CHUNKED + b"3\r\nabc\r\n" + LAST, b"abc"),
    "trailers": (POST + CHUNKED + b"3;a\r\nabc\r\n0\r\nX: y\r\n\r\n", b"abc"),
}


def pipelined() -> Iterator[Case]:
    second = [case for case in (*lines(), *chunks()) if isinstance(case.verdict.end, int)]
    for number, case in enumerate(second):
        kind, (data, body) = list(BEFORE.items())[number % len(BEFORE)]
        verdict = refused(int(case.verdict.end), body, *case.verdict.bodies)
        yield Case(f"{case.name} behind {kind}", data + case.data, verdict)


def _judged(status: int | str, body: bytes) -> Verdict:
    if isinstance(status, str):
        return Verdict(status)
    return refused(status) if status else served(body)


def _short(data: bytes) -> str:
    """A name that can be read, and is another for another's bytes."""
    text = repr(data)[2:-1]
    return text if len(text) < 60 else f"{text[:40]}…{len(data)}"
