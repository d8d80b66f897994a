"""Files that the network answers by itself: `--static`, and what nobody gets out of it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import UVICORN, Client, Server, request
from harness.http2 import Http2Client

pytestmark = [pytest.mark.runtimes, pytest.mark.skipif(UVICORN, reason="uvicorn serves no files")]

# More than sockets on both sides and every buffer between them hold.
LARGE = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("site")
    public = top / "public"
    (public / "inner").mkdir(parents=True)
    (top / "public-secret").mkdir()
    (top / "public-secret" / "key").write_text("secret")
    (top / "secret").write_text("secret")
    (public / "index.html").write_text("the page")
    (public / "inner" / "index.html").write_text("the inner page")
    (public / "style.css").write_text("body {}")
    (public / "style.css.br").write_bytes(b"brotli of it")
    (public / "style.css.gz").write_bytes(b"gzip of it")
    (public / "digits").write_bytes(b"0123456789" * 20_000)
    (public / "empty").write_bytes(b"")
    (public / ".env").write_text("secret")
    os.mkfifo(public / "pipe")
    for name, target in (("out", "../secret"), ("absolute", str(top / "secret")), ("up", "..")):
        (public / name).symlink_to(target)
    (public / "within").symlink_to("inner")
    for name, size in (("large", LARGE), ("medium", LARGE // 8)):
        (public / name).touch()
        os.truncate(public / name, size)
    return public


@pytest.fixture(scope="module")
def server(loop: str, site: Path) -> Iterator[Server]:
    options = ["--static", f"/files={site}", "--static", f"/={site}/inner", "--root-path", "/below"]
    options += ["--static", "/scope=", "--static-fallback", "/files=index.html"]
    with Server("rooted_app:app", "--loop", loop, *options) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.connect() as client:
        yield client


# --- what is there


def test_a_file_is_answered_and_one_that_the_client_has_is_not_sent_again(client: Client) -> None:
    answer = client.ask("/files/style.css")
    assert (answer.status, answer.body, answer.framing) == (200, b"body {}", "length")
    assert answer.header("content-type") == "text/css; charset=utf-8"
    assert answer.header("accept-ranges") == "bytes"
    assert answer.header("server") == "bridgehead"
    assert answer.header("vary") == "accept-encoding"
    assert answer.header("date")
    tag, modified = answer.header("etag"), answer.header("last-modified")
    assert tag is not None
    assert modified is not None
    assert tag.startswith('"')
    for condition in (("If-None-Match", tag), ("If-None-Match", f"W/{tag}"), ("If-Modified-Since", modified)):
        again = client.ask("/files/style.css", headers=[condition])
        assert (again.status, again.body, again.header("etag")) == (304, b"", tag)
        assert again.header("content-length") is None
    for condition in (("If-Match", '"another"'), ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")):
        assert client.ask("/files/style.css", headers=[condition]).status == 412
    assert client.ask("/files/style.css", headers=[("If-Match", tag)]).status == 200


def test_a_part_is_sent_to_who_has_another_part_of_the_same_file(client: Client) -> None:
    whole = client.ask("/files/digits")
    tag = whole.header("etag") or ""
    for asked, first, last in (("0-0", 0, 0), ("70000-139999", 70_000, 139_999), ("-5", 199_995, 199_999)):
        part = client.ask("/files/digits", headers=[("Range", f"bytes={asked}"), ("If-Range", tag)])
        assert part.status == 206
        assert part.header("content-range") == f"bytes {first}-{last}/200000"
        assert part.body == whole.body[first : last + 1]
    other = client.ask("/files/digits", headers=[("Range", "bytes=0-0"), ("If-Range", '"another"')])
    assert (other.status, len(other.body)) == (200, 200_000)
    behind = client.ask("/files/digits", headers=[("Range", "bytes=200000-")])
    assert (behind.status, behind.header("content-range")) == (416, "bytes */200000")
    # As many as fit into a head.
    many = client.ask("/files/digits", headers=[("Range", "bytes=" + ",".join(["0-1"] * 3_500))])
    assert (many.status, len(many.body)) == (200, 200_000)


def test_head_says_what_get_would_and_an_empty_file_is_one(client: Client) -> None:
    for path in ("/files/digits", "/files/empty", "/files/none"):
        head, whole = client.ask(path, method="HEAD"), client.ask(path)
        assert (head.status, head.body) == (whole.status, b"")
        assert head.header("content-length") == str(len(whole.body))
        assert head.header("etag") == whole.header("etag")


def test_what_a_client_likes_better_is_sent_from_beside_the_file(client: Client) -> None:
    tags = set()
    for liked, coding, body in (
        ("gzip, br", "br", b"brotli of it"),
        ("gzip;q=1, br;q=0.5", "gzip", b"gzip of it"),
        ("zstd", None, b"body {}"),
    ):
        answer = client.ask("/files/style.css", headers=[("Accept-Encoding", liked)])
        assert (answer.header("content-encoding"), answer.body) == (coding, body)
        assert answer.header("content-type") == "text/css; charset=utf-8"
        assert answer.header("vary") == "accept-encoding"
        tags.add(answer.header("etag"))
    assert len(tags) == 3


def test_a_directory_is_its_index_behind_a_slash(client: Client) -> None:
    assert client.ask("/files/").body == b"the page"
    assert client.ask("/files/inner/").body == b"the inner page"
    # Where the client sees it.
    for path, place in (("/files", "/below/files/"), ("/files/inner?a=b", "/below/files/inner/?a=b")):
        answer = client.ask(path)
        assert (answer.status, answer.header("location"), answer.body) == (307, place, b"")


def test_a_page_that_is_not_there_is_the_fallback(client: Client) -> None:
    page = client.ask("/files/users/5", headers=[("Accept", "text/html,*/*;q=0.8")])
    assert (page.status, page.body) == (200, b"the page")
    assert client.ask("/files/users/5", headers=[("Accept", "*/*")]).status == 404


def test_the_application_has_what_no_file_answers(client: Client) -> None:
    assert client.ask("/").body == b"the inner page"
    assert client.ask("/index.html").body == b"the inner page"
    assert client.ask("/scope").json()["path"] == "/below/scope"
    assert client.ask("/scope", method="POST", body=b"x").status == 200
    assert client.ask("/files-secret").json()["path"] == "/below/files-secret"
    assert client.ask("/index.html", method="POST", body=b"x").json()["path"] == "/below/index.html"
    assert client.ask("/../secret").json()["path"] == "/below/../secret"


# --- what is not


PATHS = [
    *(
        "/none",
        "/../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/%2e%2e%2fsecret",
        "/..%5csecret",
        "//secret",
    ),
    *("//etc/passwd", "/%2fetc%2fpasswd", "/style.css%00", "/%00", "/style.css/", "/./style.css", "/.env"),
    *(
        "/inner/../style.css",
        "/-secret/key",
        "/%zz",
        "/..;/secret",
        "/%c0%ae%c0%ae/secret",
        "/out",
        "/absolute",
    ),
    *("/up/secret", "/up/public/style.css", "/pipe", "/" + "a" * 300, "/a" * 1000),
]


def test_what_is_not_below_the_directory_is_not_found(client: Client) -> None:
    for path in PATHS:
        for method in ("GET", "HEAD"):
            answer = client.ask(f"/files{path}", method=method)
            assert (path, answer.status, b"secret" in answer.body) == (path, 404, False)
    assert client.ask("/files/within/index.html").body == b"the inner page"


def test_other_methods_are_refused_with_those_that_are_not(server: Server) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        with server.connect() as client:
            answer = client.ask("/files/style.css", method=method, body=b"a body")
            assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")
            # What nobody reads of it is not taken for another request.
            assert answer.closes
            assert client.read_to_any_end() == b""


def test_requests_that_are_not_in_order_are_refused_as_anywhere(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/files/style.css", host=None))
        assert client.read_response().status == 400


def test_requests_behind_each_other_are_answered_in_their_order(client: Client) -> None:
    paths = ["/files/style.css", "/scope", "/files/none", "/files/digits", "/files/style.css"]
    client.send(b"".join(map(request, paths)))
    answers = [client.read_response() for _ in paths]
    assert [each.status for each in answers] == [200, 200, 404, 200, 200]
    assert [len(each.body) for each in answers[2:]] == [9, 200_000, 7]


# --- in HTTP/2


def test_files_are_answered_in_http2_as_well(server: Server) -> None:
    with Http2Client(server.port) as client:
        whole = client.ask("/files/digits")
        assert (whole.status, whole.body) == (200, b"0123456789" * 20_000)
        assert whole.header("content-length") == "200000"
        part = client.ask("/files/digits", headers=[("range", "bytes=70001-139999")])
        assert (part.status, part.body) == (206, whole.body[70_001:140_000])
        tag = whole.header("etag") or ""
        assert client.ask("/files/digits", headers=[("if-none-match", tag)]).status == 304
        head = client.ask("/files/digits", method="HEAD")
        assert (head.status, head.body, head.header("content-length")) == (200, b"", "200000")
        assert client.ask("/files/%2e%2e/secret").status == 404
        assert client.ask("/files/style.css", method="POST", body=b"x").status == 405
        assert client.ask("/scope").status == 200
        medium = client.begin("/files/medium")
        small = client.ask("/files/style.css")
        assert small.body == b"body {}"
        assert len(client.answer(medium).body) == LARGE // 8


# --- clients that are slow, leave, or ask for too much


def test_slow_downloads_hold_no_thread_and_little_memory(loop: str, site: Path) -> None:
    with Server("rooted_app:app", "--loop", loop, "--static", f"/files={site}") as server:
        assert server.ask("/files/digits").status == 200
        before = server.memory_peak()
        clients = [server.connect(receive_buffer=32_768) for _ in range(60)]
        for client in clients:
            client.send(request("/files/large"))
            # One after the other, so that no two are opened at once.
            assert client.read_head()[1] == 200
        # The loop is free, and so is the pool.
        assert server.ask("/files/digits").status == 200
        assert server.ask("/scope").status == 200
        threads = len(list(Path(f"/proc/{server.pid}/task").iterdir()))
        assert threads < 40
        assert server.memory_peak() - before < 60 * 1024 * 1024
        opened = server.open_files()
        for client in clients[1:]:
            client.close()
        assert len(clients[0].read_exactly(LARGE)) == LARGE
        _until(lambda: server.open_files() <= opened - 100)


def test_a_file_that_is_cut_off_meanwhile_breaks_its_answer_off(loop: str, tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(bytes(LARGE))
    with Server("rooted_app:app", "--loop", loop, "--static", f"/files={tmp_path}") as server:
        with server.connect(receive_buffer=32_768) as slow:
            slow.send(request("/files/log"))
            slow.read_head()
            os.truncate(file, 1000)
            assert len(slow.read_to_any_end()) < LARGE
        assert server.ask("/files/log").body == bytes(1000)


def test_a_file_that_grows_meanwhile_is_sent_as_it_was(loop: str, tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(bytes(LARGE))
    with (
        Server("rooted_app:app", "--loop", loop, "--static", f"/files={tmp_path}") as server,
        server.connect(receive_buffer=32_768) as client,
    ):
        client.send(request("/files/log"))
        client.read_head()
        with file.open("ab") as more:
            more.write(b"more")
        file.unlink()
        assert client.read_exactly(LARGE) == bytes(LARGE)
        assert client.ask("/files/log").status == 404


def test_no_more_files_are_open_than_may_be(loop: str, site: Path) -> None:
    options = ["--limit-static", "1", "--limit-queue", "0"]
    with Server("rooted_app:app", "--loop", loop, "--static", f"/files={site}", *options) as server:
        with server.connect(receive_buffer=32_768) as slow:
            slow.send(request("/files/large"))
            slow.read_head()
            answer = server.ask("/files/style.css")
            assert (answer.status, answer.header("retry-after")) == (503, "1")
            assert b"too many files are open" in answer.body
            # The application is not counted among them.
            assert server.ask("/scope").status == 200
        _until(lambda: server.ask("/files/style.css").status == 200)


def test_a_download_is_finished_before_the_end(loop: str, site: Path) -> None:
    with (
        Server("rooted_app:app", "--loop", loop, "--static", f"/files={site}") as server,
        server.connect(receive_buffer=32_768) as client,
    ):
        client.send(request("/files/large"))
        client.read_head()
        server.process.terminate()
        _until(lambda: not _lets_in(server.port))
        assert len(client.read_exactly(LARGE)) == LARGE
        assert server.wait_exit() == 0


# --- what is told of them


def test_files_have_access_lines_as_other_answers(loop: str, site: Path) -> None:
    layout = "{method} {target} {status} {bytes_out}"
    options = ["--access-log-format", layout]
    with Server("rooted_app:app", "--loop", loop, "--static", f"/files={site}", *options) as server:
        server.ask("/files/digits")
        server.ask("/files/none")
        with Http2Client(server.port) as client:
            client.ask("/files/digits", headers=[("range", "bytes=5-9")])
        for line in ("GET /files/digits 200 200000", "GET /files/none 404 9", "GET /files/digits 206 5"):
            server.wait_line(line, stream="stdout")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--static", "/files=nowhere-at-all"], "is no directory"),
        (["--static", "/a=.", "--static", "/a/=."], "given twice"),
        (["--static-fallback", "/a=index.html"], "there is no directory at /a"),
        (["--static", "files=."], "is not a path of requests"),
        (["--static", "/a/../b=."], "is no path of requests"),
    ],
)
def test_a_mistake_ends_the_start_with_a_word(options: list[str], word: str) -> None:
    with Server("rooted_app:app", *options, ready=False) as server:
        assert server.wait_exit(30) == 3
        assert word in server.stderr
        assert "Waiting for application startup" not in server.stderr


def _lets_in(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def _until(holds: object) -> None:
    assert callable(holds)
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
