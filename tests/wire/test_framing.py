"""Where one request ends and the next begins: bodies, chunks and the ways to lie about them.

RFC 9112 sections 5 to 7. Each refused case has a second request right behind it that must never run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from harness import UVICORN, ClosedError, Server, assert_refused, request, seen

POST = b"POST /echo HTTP/1.1\r\nHost: test\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("wire_app:app") as server:
        yield server


CODINGS = {
    "gzip before chunked": b"gzip, chunked",
    "gzip alone": b"gzip",
    "chunked before gzip": b"chunked, gzip",
    "identity": b"identity",
    "unknown": b"xchunked",
    "chunked twice": b"chunked, chunked",
    "empty": b"",
    "with a parameter": b"chunked;q=1",
    "quoted": b'"chunked"',
    "vertical tab in front": b"\x0bchunked",
    "form feed behind": b"chunked\x0c",
    "next line behind": b"chunked\x85",
    "no-break space in front": b"\xa0chunked",
    "NUL inside": b"chun\x00ked",
    "carriage return inside": b"chun\rked",
    "split by a space": b"chun ked",
    "cut": b"chunke",
    "with a full stop": b"chunked.",
    "with a semicolon": b"chunked;",
}


@pytest.mark.parametrize("value", CODINGS.values(), ids=CODINGS.keys())
def test_a_transfer_encoding_other_than_chunked_is_refused(server: Server, value: bytes) -> None:
    assert_refused(server, POST + b"Transfer-Encoding: " + value + b"\r\n\r\n0\r\n\r\n", {400, 501})


NAMES = {
    "space before the colon": b"Transfer-Encoding : chunked",
    "tab before the colon": b"Transfer-Encoding\t: chunked",
    "space in front": b" Transfer-Encoding: chunked",
    "folded value": b"Transfer-Encoding:\r\n chunked",
    "folded by a tab": b"X: y\r\n\tTransfer-Encoding: chunked",
    "NUL in the name": b"Transfer-Encoding\x00: chunked",
    "vertical tab in the name": b"Transfer-Encoding\x0b: chunked",
    "carriage return in the name": b"Transfer\r-Encoding: chunked",
    "bare carriage return as line end": b"X: y\rTransfer-Encoding: chunked",
    "not ASCII in the name": b"Transfer\xad-Encoding: chunked",
}


@pytest.mark.parametrize("line", NAMES.values(), ids=NAMES.keys())
def test_a_disguised_transfer_encoding_is_refused(server: Server, line: bytes) -> None:
    assert_refused(server, POST + line + b"\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", {400, 501})


@pytest.mark.parametrize("value", [b"chunked", b"Chunked", b"CHUNKED", b" \t chunked \t "])
def test_chunked_is_found_in_any_case_and_with_space_around(server: Server, value: bytes) -> None:
    with server.connect() as client:
        client.send(POST + b"Transfer-Encoding:" + value + b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        assert client.read_response().body == b"abc"
        client.assert_open()


@pytest.mark.parametrize(
    "lines",
    [
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    ],
)
def test_two_transfer_encodings_are_refused(server: Server, lines: bytes) -> None:
    assert_refused(server, POST + lines + b"\r\n0\r\n\r\n", {400, 501})


def test_chunked_in_http_1_0_is_refused(server: Server) -> None:
    head = (
        b"POST /echo HTTP/1.0\r\nHost: test\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert_refused(server, head + b"0\r\n\r\n", {400})


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\nG"),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", b"0\r\n\r\nG"),
        (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"2\r\nab\r\n0\r\n\r\n"),
        (b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", b"2\r\nab\r\n0\r\n\r\n"),
    ],
)
def test_a_length_beside_chunked_is_refused_or_ends_the_connection(
    server: Server, lines: bytes, body: bytes
) -> None:
    before = seen(server)
    with server.connect() as client:
        client.send(POST + lines + b"\r\n" + body + request("/smuggled/by-length"))
        first = client.read_response()
        client.assert_closed()
    assert first.status in (200, 400)
    if first.status == 200:
        assert first.body in (b"", b"ab")
        assert first.closes
    assert "/smuggled/by-length" not in seen(server)
    assert len(seen(server)) - len(before) <= 1


LENGTHS = {
    "sign": b"+5",
    "minus": b"-5",
    "minus zero": b"-0",
    "hexadecimal": b"0x5",
    "underscore": b"5_0",
    "letter behind": b"5Z",
    "space inside": b"5 5",
    "comma, different": b"5, 6",
    "empty": b"",
    "letter": b"five",
    "decimal point": b"5.0",
    "exponent": b"5e0",
    "20 digits": b"99999999999999999999",
    "2 to the 64th": b"18446744073709551616",
    "2 to the 64th and 5": b"18446744073709551621",
    "digits that are not ASCII": b"\xd9\xa5",
    "vertical tab in front": b"\x0b5",
    "NUL behind": b"5\x00",
    "quoted": b'"5"',
    "semicolon": b"5;",
}


@pytest.mark.parametrize("value", LENGTHS.values(), ids=LENGTHS.keys())
def test_a_malformed_content_length_is_refused(server: Server, value: bytes) -> None:
    assert_refused(server, POST + b"Content-Length: " + value + b"\r\n\r\nhello", {400, 413})


@pytest.mark.parametrize(
    "lines", [b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 6, 5\r\n"]
)
def test_two_different_lengths_are_refused(server: Server, lines: bytes) -> None:
    assert_refused(server, POST + lines + b"\r\nhello", {400})


@pytest.mark.parametrize(
    "lines", [b"Content-Length: 5\r\nContent-Length: 5\r\n", b"Content-Length: 5, 5\r\n"]
)
def test_two_equal_lengths_are_refused_or_read_as_one(server: Server, lines: bytes) -> None:
    with server.connect() as client:
        client.send(POST + lines + b"\r\nhello" + request("/hello"))
        first = client.read_response()
        assert (first.status, first.body) == (200, b"hello") or first.status == 400
        if first.status == 200:
            assert client.read_response().body == b"hello"
        else:
            client.assert_closed()


def test_leading_zeros_of_a_length_are_refused_or_read_as_decimal(server: Server) -> None:
    with server.connect() as client:
        client.send(POST + b"Content-Length: 010\r\n\r\n0123456789")
        first = client.read_response()
        assert (first.status, first.body) == (200, b"0123456789") or first.status == 400


CHUNKS = {
    "hexadecimal prefix": b"0x5\r\nhello\r\n0\r\n\r\n",
    "sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "minus": b"-5\r\nhello\r\n0\r\n\r\n",
    "underscore": b"0_5\r\nhello\r\n0\r\n\r\n",
    "space in front": b" 5\r\nhello\r\n0\r\n\r\n",
    "tab in front": b"\t5\r\nhello\r\n0\r\n\r\n",
    "space behind": b"5 \r\nhello\r\n0\r\n\r\n",
    "space before an extension": b"5 ;a\r\nhello\r\n0\r\n\r\n",
    "tab before an extension": b"5\t;a\r\nhello\r\n0\r\n\r\n",
    "coding in the trailers": b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "bad length in the trailers": b"5\r\nhello\r\n0\r\nContent-Length: +5\r\n\r\n",
    "two lengths in the trailers": b"5\r\nhello\r\n0\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
    "empty size": b"\r\nhello\r\n0\r\n\r\n",
    "no hexadecimal": b"g\r\nhello\r\n0\r\n\r\n",
    "16 digits": b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "17 digits": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "16 zeros before a digit": b"0" * 16 + b"5\r\nhello\r\n0\r\n\r\n",
    "40 digits": b"5" * 40 + b"\r\nhello\r\n0\r\n\r\n",
    "carriage return and no line feed": b"5\rhello\r\n0\r\n\r\n",
    "two carriage returns": b"5\r\r;ext\r\nhello\r\n0\r\n\r\n",
    "carriage return in an extension": b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "line feed in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "line feed as the end of an extension": b"5;\nhello\r\n0\r\n\r\n",
    "line break in a quoted extension": b'5;a="\r\nx"\r\nhello\r\n0\r\n\r\n',
    "line feed ends the size": b"5\nhello\r\n0\r\n\r\n",
    "longer than its size": b"4\r\nhello\r\n0\r\n\r\n",
    "shorter than its size": b"6\r\nhello\r\n0\r\n\r\n",
    "no line break behind": b"5\r\nhello0\r\n\r\n",
    "two bytes that are no line break": b"5\r\nhelloXX0\r\n\r\n",
    "line feed behind": b"5\r\nhello\n0\r\n\r\n",
    "NUL instead of a size": b"\x00\r\nhello\r\n0\r\n\r\n",
    "not ASCII": b"\xd9\xa5\r\nhello\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("body", CHUNKS.values(), ids=CHUNKS.keys())
def test_a_malformed_chunk_ends_the_connection_and_never_completes_the_body(
    server: Server, body: bytes, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id.replace(" ", "-")
    head = f"POST /collect/{name}?name={name} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
    follower = f"GET /smuggled/{name} HTTP/1.1\r\nHost: test\r\n\r\n"
    with server.connect() as client:
        client.send(head.encode() + body + follower.encode())
        client.half_close()
        answer = client.read_to_any_end()
    assert b" 200 " not in answer.partition(b"\r\n")[0]
    assert answer.count(b"HTTP/1.") <= 1
    assert f"/smuggled/{name}" not in seen(server)
    if f"/collect/{name}" in seen(server):
        assert server.note(name)["complete"] is False


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5;ext\r\nhello\r\n0;last\r\n\r\n",
        b'5;ext="quoted; still"\r\nhello\r\n0\r\n\r\n',
        b"00000005\r\nhello\r\n000\r\n\r\n",
        b"1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\nX-Trailer: yes\r\n\r\n",
    ],
)
def test_a_chunked_body_reaches_the_application_whole(server: Server, body: bytes) -> None:
    with server.connect() as client:
        client.send(CHUNKED + body + request("/hello"))
        assert client.read_response().body == b"hello"
        assert client.read_response().body == b"hello"


def test_chunk_sizes_are_read_in_either_case(server: Server) -> None:
    with server.connect() as client:
        client.send(CHUNKED + b"A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n")
        assert client.read_response().body == b"01234567890123456789a"


def test_trailers_never_reach_the_headers(server: Server) -> None:
    with server.connect() as client:
        client.send(
            b"POST /scope HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"0\r\nAuthorization: Basic eDp5\r\nHost: other\r\nContent-Length: 7\r\nX-Trailer: y\r\n\r\n"
        )
        headers = dict(client.read_response().json()["headers"])
        client.assert_open()
    assert headers["host"] == "test"
    assert not {"authorization", "content-length", "x-trailer"} & headers.keys()


HEADER_LINES = {
    "carriage return in a value": b"X: a\rb",
    "NUL in a value": b"X: a\x00b",
    "bell in a value": b"X: a\x07b",
    "escape in a value": b"X: a\x1bb",
    "delete in a value": b"X: a\x7fb",
    "folded line": b"X: a\r\n b",
    "folded empty line": b"X: a\r\n \r\nY: z",
    "space before the colon": b"X : a",
    "empty name": b": a",
    "no colon": b"X",
    "space in the name": b"X Y: a",
    "quote in the name": b'X"Y: a',
    "parenthesis in the name": b"X(Y): a",
    "at sign in the name": b"X@Y: a",
    "slash in the name": b"X/Y: a",
    "NUL in the name": b"X\x00Y: a",
    "not ASCII in the name": b"X\xe9Y: a",
}


@pytest.mark.parametrize("line", HEADER_LINES.values(), ids=HEADER_LINES.keys())
def test_a_malformed_header_line_is_refused(server: Server, line: bytes) -> None:
    assert_refused(server, b"GET /hello HTTP/1.1\r\nHost: test\r\n" + line + b"\r\n\r\n", {400})


@pytest.mark.parametrize("line", HEADER_LINES.values(), ids=HEADER_LINES.keys())
def test_a_malformed_header_line_is_refused_byte_by_byte(server: Server, line: bytes) -> None:
    assert_refused(
        server, b"GET /hello HTTP/1.1\r\nHost: test\r\n" + line + b"\r\n\r\n", {400}, byte_by_byte=True
    )


def test_a_space_before_the_first_header_is_refused(server: Server) -> None:
    assert_refused(server, b"GET /hello HTTP/1.1\r\n Host: test\r\nX: y\r\n\r\n", {400})


@pytest.mark.parametrize(
    "head",
    [
        b"GET /hello HTTP/1.1\nHost: test\n\n",
        b"GET /hello HTTP/1.1\r\nHost: test\n\r\n",
        b"GET /hello HTTP/1.1\nHost: test\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nHost: test\r\n\n",
    ],
)
def test_a_bare_line_feed_is_judged_the_same_however_it_is_split(server: Server, head: bytes) -> None:
    with server.connect() as client:
        client.send(head)
        client.half_close()
        whole = client.read_to_any_end().partition(b"\r\n")[0]
    assert whole.startswith((b"HTTP/1.1 400", b"HTTP/1.1 200"))
    for split in range(1, len(head)):
        with server.connect() as client:
            client.send(head[:split])
            server.ask("/hello")
            client.try_send(head[split:])
            client.half_close()
            assert client.read_to_any_end().partition(b"\r\n")[0] == whole


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "HEAD", "QUERY"])
def test_a_body_of_any_method_is_consumed(server: Server, method: str) -> None:
    body = request("/smuggled/in-a-body")
    with server.connect() as client:
        client.send(request("/hello", method=method, body=body) + request("/hello"))
        assert client.read_response(method=method).status == 200
        assert client.read_response().body == b"hello"
    assert "/smuggled/in-a-body" not in seen(server)


def test_a_small_body_that_the_application_does_not_read_is_skipped(server: Server) -> None:
    body = request("/smuggled/unread") * 20
    with server.connect() as client:
        client.send(request("/noread", method="POST", body=body) + request("/hello"))
        assert client.read_response().body == b"not read"
        client.half_close_quietly()
        rest = client.read_to_any_end()
    assert rest == b"" or rest.endswith(b"\r\n\r\nhello")
    assert "/smuggled/unread" not in seen(server)


def test_a_large_body_that_the_application_does_not_read_never_becomes_requests(server: Server) -> None:
    follower = request("/smuggled/unread-large")
    body = follower * (1024 * 1024 // len(follower))
    with server.connect() as client:
        client.try_send(request("/noread", method="POST", body=body))
        client.try_send(follower)
        # uvicorn's reset may overtake its answer.
        with contextlib.suppress(ClosedError) if UVICORN else contextlib.nullcontext():
            response = client.read_response()
            assert response.body == b"not read"
            assert response.closes or UVICORN
        client.half_close_quietly()
        client.read_to_any_end()
    if "/smuggled/unread-large" in seen(server):
        # Only the one behind the body, and only when all of the body was skipped.
        assert seen(server).count("/smuggled/unread-large") == 1


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.skipif(UVICORN, reason="uvicorn completes a truncated body now and then")
def test_an_upload_that_is_cut_at_any_byte_is_never_complete(server: Server, chunked: bool) -> None:
    if chunked:
        body = b"a\r\n0123456789\r\n5\r\nabcde\r\n0\r\n\r\n"
        framing = b"Transfer-Encoding: chunked"
    else:
        body = b"0123456789abcde"
        framing = b"Content-Length: 15"
    kind = "chunked" if chunked else "length"
    for cut in range(len(body)):
        name = f"cut-{kind}-{cut}"
        with server.connect() as client:
            client.send(
                b"POST /collect?name=%b HTTP/1.1\r\nHost: test\r\n%b\r\n\r\n" % (name.encode(), framing)
            )
            client.send(body[:cut])
            client.half_close()
            client.read_to_any_end()
        summary = server.note(name)
        assert summary["last"] == "http.disconnect", (cut, summary)
        assert "0123456789abcde".startswith(summary["body"])


def test_an_upload_that_is_cut_by_a_reset_is_never_complete(server: Server) -> None:
    for cut in (0, 1, 10, 14):
        name = f"reset-{cut}"
        client = server.connect()
        client.send(
            b"POST /collect?name=%b HTTP/1.1\r\nHost: test\r\nContent-Length: 15\r\n\r\n" % name.encode()
        )
        client.send(b"0123456789abcde"[:cut])
        # The application must have been called, else there is nobody to tell.
        server.note(f"{name}-began")
        client.reset()
        assert server.note(name)["last"] == "http.disconnect"


def test_a_hundred_headers_are_served(server: Server) -> None:
    headers = [(f"X-{number}", "v" * 50) for number in range(90)]
    with server.connect() as client:
        response = client.ask("/scope", headers=headers)
        assert len(response.json()["headers"]) == 91


def test_too_many_headers_are_refused_and_not_run(server: Server) -> None:
    head = request("/smuggled/many-headers", headers=[(f"X-{number}", "v") for number in range(20_000)])
    with server.connect() as client:
        client.try_send(head)
        answer = client.read_to_any_end()
    assert answer == b"" or answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
    assert "/smuggled/many-headers" not in seen(server)


def test_a_head_of_a_megabyte_is_refused_and_not_run(server: Server) -> None:
    head = request("/smuggled/long-header", headers=[("X", "v" * 1_000_000)])
    with server.connect() as client:
        client.try_send(head)
        answer = client.read_to_any_end()
    assert answer == b"" or answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
    assert "/smuggled/long-header" not in seen(server)


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00" * 64, b"\xff" * 64]
)
def test_bytes_that_are_no_http_end_the_connection(server: Server, data: bytes) -> None:
    with server.connect() as client:
        client.send(data + b"\r\n\r\n")
        answer = client.read_to_any_end()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
    assert server.ask("/hello").status == 200


def test_the_http_2_preface_is_not_answered_as_http_1_1(server: Server) -> None:
    before = seen(server)
    with server.connect() as client:
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        client.half_close()
        answer = client.read_to_any_end()
    assert b" 200 " not in answer
    assert seen(server) == before
