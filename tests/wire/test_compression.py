"""Answers that are compressed: `--compress`, and what is never touched."""

from __future__ import annotations

import itertools
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from harness import APPS, UVICORN, Client, Server, request
from harness.http2 import Http2Client, Stream

sys.path.insert(0, str(APPS))
from compressed_app import text

pytestmark = [pytest.mark.runtimes, pytest.mark.skipif(UVICORN, reason="uvicorn does not compress")]

GZIP = ("Accept-Encoding", "gzip")
names = (f"events-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    options = ["--compress", "--pathsend"]
    with Server("compressed_app:app", "--loop", loop, *options, allow=["Traceback"]) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.connect() as client:
        yield client


def gunzipped(body: bytes) -> bytes:
    decoder = zlib.decompressobj(31)
    plain = decoder.decompress(body)
    assert decoder.eof
    assert not decoder.unused_data
    return plain


def test_an_answer_gets_the_coding_that_its_client_likes_best(client: Client) -> None:
    whole = client.ask("/whole").body
    for liked, coding, beginning in (
        ("gzip, deflate, br, zstd", "zstd", b"\x28\xb5\x2f\xfd"),
        ("gzip, br", "br", b""),
        ("gzip;q=1.0, zstd;q=0.5", "gzip", b"\x1f\x8b"),
        ("*", "zstd", b"\x28\xb5\x2f\xfd"),
    ):
        answer = client.ask("/whole", headers=[("Accept-Encoding", liked)])
        assert (answer.status, answer.header("content-encoding")) == (200, coding)
        assert answer.body.startswith(beginning)
        # It is short, so it is known how long it becomes.
        assert (answer.framing, answer.header("vary")) == ("length", "accept-encoding")
        assert len(answer.body) < len(whole) * 0.7
    for liked in ("deflate", "identity", "gzip;q=0", "gzip;q=0.5, identity"):
        answer = client.ask("/whole", headers=[("Accept-Encoding", liked)])
        assert (answer.header("content-encoding"), answer.body) == (None, whole)
        assert answer.header("vary") == "accept-encoding"


@pytest.mark.parametrize(
    "target", ["/whole?size=5000", "/whole?size=400000", "/pieces", "/pieces?declared=1"]
)
@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_what_is_read_is_what_was_sent(server: Server, target: str, version: str) -> None:
    with server.connect() as client:
        answer = client.ask(target, headers=[GZIP], version=version)
        size = int(target.partition("size=")[2] or 500_000)
        assert gunzipped(answer.body) == text(size)
        assert answer.header("content-encoding") == "gzip"
        if version == "1.1":
            assert client.ask("/hello").body == b"hello"
        for liked in ("zstd", "br"):
            with server.connect() as other:
                coded = other.ask(target, headers=[("Accept-Encoding", liked)], version=version)
            assert len(coded.body) < size * 0.7


def test_what_is_read_is_what_was_sent_in_http2(server: Server) -> None:
    with Http2Client(server.port) as client:
        for target, size in (("/whole", 5000), ("/whole?size=1000000", 1_000_000), ("/pieces", 500_000)):
            answer = client.ask(target, headers=[("accept-encoding", "gzip")])
            assert (answer.status, answer.header("content-encoding")) == (200, "gzip")
            assert gunzipped(answer.body) == text(size)
            length = answer.header("content-length")
            assert length in (None, str(len(answer.body)))


def test_each_event_leaves_when_it_is_sent(server: Server) -> None:
    for liked in ("gzip", "zstd", "br"):
        with server.connect() as client:
            name, decoder = next(names), zlib.decompressobj(31)
            client.send(request(f"/events?name={name}", headers=[("Accept-Encoding", liked)]))
            assert ("content-encoding", liked) in client.read_head()[3]
            for number in range(3):
                piece = client.read_chunk()
                assert piece
                if liked == "gzip":
                    plain = decoder.decompress(piece)
                    while len(plain) < 9:
                        plain += decoder.decompress(client.read_chunk())
                    assert plain == b"data: %d\n\n" % number
                server.ring(f"{name}-{number}")
            rest = b"".join(client.read_chunks())
            if liked == "gzip":
                assert decoder.decompress(rest) == b""
                assert decoder.eof


def test_an_event_leaves_when_it_is_sent_in_http2(server: Server) -> None:
    with Http2Client(server.port) as client:
        name = next(names)
        number = client.begin(f"/events?name={name}", headers=[("accept-encoding", "gzip")])

        def has(event: bytes) -> Callable[[Stream], bool]:
            return lambda stream: zlib.decompressobj(31).decompress(stream.body).endswith(event)

        for event in range(3):
            client.wait(number, has(b"data: %d\n\n" % event))
            server.ring(f"{name}-{event}")
        assert gunzipped(client.answer(number).body) == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_what_is_not_to_be_compressed_is_not(client: Client) -> None:
    for query in (
        "kind=image/png",
        "size=1023",
        "status=206",
        "header=Content-Encoding: br",
        "header=Cache-Control: public, no-transform",
        "header=Content-Range: bytes 0-4999/5000",
        "header=Content-Digest: sha-256=:AAAA:",
    ):
        target = f"/whole?{quote(query, safe='=')}"
        plain, asked = client.ask(target), client.ask(target, headers=[GZIP])
        assert (asked.body, asked.status) == (plain.body, plain.status)
        for name in ("content-encoding", "content-length", "vary"):
            assert (query, asked.header(name)) == (query, plain.header(name))
        assert asked.header("vary") is None
    answer = client.ask("/whole?status=204", headers=[GZIP])
    assert (answer.status, answer.header("content-encoding"), answer.header("vary")) == (204, None, None)


@pytest.mark.parametrize("liked", [[GZIP], []], ids=["gzip", "none"])
def test_a_304_says_of_its_answer_what_the_200_said(
    client: Client, server: Server, liked: list[tuple[str, str]]
) -> None:
    for method in ("GET", "HEAD"):
        whole = client.ask("/tagged", method=method, headers=liked)
        tag = whole.header("etag") or ""
        assert tag == ('W/"abc"' if liked else '"abc"')
        again = client.ask("/tagged", method=method, headers=[*liked, ("If-None-Match", tag)])
        assert (again.status, again.header("content-encoding")) == (304, None)
        for name in ("etag", "vary"):
            assert again.all(name) == whole.all(name), name
    with Http2Client(server.port) as other:
        small = [(name.lower(), value) for name, value in liked]
        last = other.ask("/tagged", headers=[*small, ("if-none-match", tag)])
        assert (last.status, last.header("etag"), last.header("vary")) == (304, tag, "accept-encoding")


def test_a_304_of_what_is_not_compressed_is_left_as_it_is(client: Client) -> None:
    answer = client.ask("/whole?status=304&kind=image/png", headers=[GZIP])
    assert (answer.status, answer.header("vary")) == (304, None)


def test_head_gets_the_head_of_what_get_would_get_but_for_a_length(client: Client) -> None:
    for target in ("/whole", "/file", "/pieces?declared=1", "/incompressible"):
        got = client.ask(target, headers=[GZIP])
        told = client.ask(target, method="HEAD", headers=[GZIP])
        assert (told.status, told.body, told.header("content-length")) == (200, b"", None)
        for name in ("content-encoding", "vary", "content-type"):
            assert told.header(name) is not None
            assert told.header(name) == got.header(name)
        plain = client.ask(target, method="HEAD")
        assert (plain.header("content-encoding"), plain.header("vary")) == (None, "accept-encoding")
        assert plain.header("content-length") == str(len(gunzipped(got.body)))


@pytest.mark.parametrize("size", [5000, 100_000])
def test_head_is_told_no_length_of_the_body_that_it_does_not_get(
    client: Client, server: Server, size: int
) -> None:
    told = client.ask(f"/unasked?size={size}", method="HEAD", headers=[GZIP])
    assert (told.status, told.body, told.header("content-length")) == (200, b"", None)
    assert (told.header("content-encoding"), told.header("vary")) == ("gzip", "accept-encoding")
    assert client.ask("/hello").body == b"hello"
    with Http2Client(server.port) as other:
        again = other.ask(f"/unasked?size={size}", method="HEAD", headers=[("accept-encoding", "gzip")])
        assert (again.header("content-length"), again.header("content-encoding")) == (None, "gzip")
        assert again.body == b""


def test_head_is_told_of_no_coding_where_nobody_knows_whether_there_would_be_one(client: Client) -> None:
    for target, vary in (("/pieces", "accept-encoding"), ("/whole?size=10", None)):
        answer = client.ask(target, method="HEAD", headers=[GZIP])
        assert (answer.header("content-encoding"), answer.header("vary")) == (None, vary)


def test_head_of_http2_gets_the_head_of_what_get_would_get(server: Server) -> None:
    with Http2Client(server.port) as client:
        for target in ("/whole", "/file"):
            told = client.ask(target, method="HEAD", headers=[("accept-encoding", "gzip")])
            assert (told.header("content-encoding"), told.header("content-length")) == ("gzip", None)
            assert (told.header("vary"), told.body) == ("accept-encoding", b"")


def test_a_tag_becomes_a_weak_one_and_vary_keeps_what_it_says(client: Client) -> None:
    for header, name, value in (
        ('ETag: "a"', "etag", 'W/"a"'),
        ('ETag: W/"a"', "etag", 'W/"a"'),
        ("Accept-Ranges: bytes", "accept-ranges", None),
    ):
        assert client.ask(f"/whole?header={quote(header)}", headers=[GZIP]).header(name) == value
    answer = client.ask("/whole?header=Vary:%20Cookie", headers=[GZIP])
    assert answer.all("vary") == ["Cookie", "accept-encoding"]
    assert client.ask("/whole?header=Vary:%20*", headers=[GZIP]).all("vary") == ["*"]


def test_trailers_follow_a_compressed_body(server: Server) -> None:
    with Http2Client(server.port) as client:
        answer = client.ask("/trailers", headers=[("te", "trailers"), ("accept-encoding", "gzip")])
        assert gunzipped(answer.body) == text(2000) * 2
        assert answer.trailers == [("x-sum", "6")]


@pytest.mark.parametrize("target", ["/file", "/file?open=1"])
def test_files_of_the_application_are_compressed_as_other_bodies(client: Client, target: str) -> None:
    answer = client.ask(target, headers=[GZIP])
    assert gunzipped(answer.body) == (APPS / "compressed_app.py").read_bytes()


def test_an_answer_that_breaks_off_does_not_look_complete(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/broken", headers=[GZIP]))
        client.read_head()
        came = client.read_to_any_end()
        assert not came.endswith(b"0\r\n\r\n")


def test_a_client_that_reads_late_costs_little_and_has_all(server: Server) -> None:
    before = server.memory_peak()
    with server.connect(receive_buffer=32_768) as client:
        client.send(request("/noise", headers=[GZIP]))
        client.read_head()
        for _ in range(20):
            assert server.ask("/hello").body == b"hello"
        decoder, size = zlib.decompressobj(31), 0
        while piece := client.read_chunk():
            size += len(decoder.decompress(piece))
        assert (size, decoder.eof) == (1000 * 32_768, True)
    # Half of what was sent: all else of the worker is in it too.
    assert server.memory_peak() - before < 16 * 1024 * 1024


def test_types_and_the_least_size_can_be_chosen(loop: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes(text(5000))
    options = [
        "--compress",
        "--compress-type",
        "+zip",
        "--compress-type",
        "image/*",
        "--compress-min-size",
        "10",
    ]
    options += ["--static", f"/static={tmp_path}"]
    with (
        Server("compressed_app:app", "--loop", loop, *options) as server,
        server.connect() as client,
    ):
        for kind, coding in (("text/plain", None), ("image/png", "gzip"), ("application/x+zip", "gzip")):
            target = f"/whole?size=200&kind={kind.replace('+', '%2B')}"
            assert client.ask(target, headers=[GZIP]).header("content-encoding") == coding
        # Files have their own, beside them.
        assert client.ask("/static/words.txt", headers=[GZIP]).body == text(5000)


def test_nothing_is_compressed_unless_it_is_asked_for(loop: str) -> None:
    with Server("compressed_app:app", "--loop", loop) as server, server.connect() as client:
        answer = client.ask("/whole", headers=[GZIP])
        assert (answer.header("content-encoding"), answer.header("vary")) == (None, None)
