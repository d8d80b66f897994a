"""What a scope offers beyond ASGI's own messages: files, trailers, the notice of the end."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Client, Response, Server

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no extensions")

START = {"type": "http.response.start", "status": 200}
PROMISE = {**START, "trailers": True}
BODY = {"type": "http.response.body", "body": b"body"}
TRAILERS = {"type": "http.response.trailers", "headers": [(b"x-one", b"1"), ("x-two", "2")]}
TAKES_TRAILERS = (("TE", "gzip;q=0.5, trailers"),)

names = (f"extension-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop, "--pathsend", allow=["Traceback"]) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Larger than what is read at once, and not a multiple of it."""
    path = tmp_path / "a file.bin"
    path.write_bytes(os.urandom(300_001))
    return path


def code(messages: tuple[object, ...]) -> bytes:
    return (
        "[" + ", ".join(each if isinstance(each, str) else repr(each) for each in messages) + "]"
    ).encode()


def send_messages(
    server: Server, *messages: object, headers: tuple[tuple[str, str], ...] = ()
) -> tuple[Response, dict[str, Any]]:
    """The answer to an application that sends `messages` (text is code), and what its `send` raised."""
    name = next(names)
    with server.connect() as client:
        response = client.ask(f"/messages?name={name}", method="POST", headers=headers, body=code(messages))
        report: dict[str, Any] = server.note(name)
    return response, report


def path_send(path: Path | str) -> dict[str, str]:
    return {"type": "http.response.pathsend", "path": str(path)}


def zero_copy(path: Path, rest: str = "") -> str:
    return f'{{"type": "http.response.zerocopysend", "file": open({str(path)!r}, "rb"){rest}}}'


# --- what is offered


def test_trailers_are_offered_to_clients_that_take_them(server: Server) -> None:
    with server.connect() as client:
        assert "http.response.trailers" not in client.ask("/scope").json()["extensions"]
        taken = client.ask("/scope", headers=TAKES_TRAILERS).json()["extensions"]
        assert taken["http.response.trailers"] == {}
    with server.connect() as client:
        old = client.ask("/scope", version="1.0", headers=TAKES_TRAILERS).json()["extensions"]
        assert "http.response.trailers" not in old


def test_trailers_are_not_offered_to_head_whose_answer_has_no_place_for_them(server: Server) -> None:
    with server.connect() as client:
        for method, is_offered in (("HEAD", False), ("GET", True)):
            name = f"offered-{method}"
            client.ask(f"/offered?name={name}", method=method, headers=TAKES_TRAILERS)
            assert ("http.response.trailers" in server.note(name)) == is_offered


def test_paths_are_offered_when_they_are_asked_for(server: Server) -> None:
    assert server.ask("/scope").json()["extensions"]["http.response.pathsend"] == {}
    with Server("asgi_app:app", allow=["Traceback"]) as plain:
        offered = plain.ask("/scope").json()["extensions"]
        assert "http.response.pathsend" not in offered
        assert offered["http.response.zerocopysend"] == {}
        response, report = send_messages(plain, START, path_send(__file__))
        assert report["position"] == 1
        assert "--pathsend" in report["says"]
        assert response.status == 200


# --- a file by its name


def test_a_path_is_answered_with_the_files_bytes_and_length(server: Server, file: Path) -> None:
    response, report = send_messages(server, START, path_send(file))
    assert report["position"] is None, report
    assert response.framing == "length"
    assert response.body == file.read_bytes()


def test_an_empty_file_is_an_empty_body(server: Server, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    response, _ = send_messages(server, START, path_send(tmp_path / "empty"))
    assert (response.framing, response.body) == ("length", b"")


def test_a_declared_length_stands(server: Server, file: Path) -> None:
    size = str(file.stat().st_size)
    response, _ = send_messages(server, {**START, "headers": [("content-length", size)]}, path_send(file))
    assert response.body == file.read_bytes()


@pytest.mark.parametrize("send", [path_send, zero_copy])
@pytest.mark.parametrize(("length", "says"), [(299_999, "2 bytes more"), (10, "more")])
def test_a_file_that_is_longer_than_its_length_is_cut_there_and_how_much_is_not_guessed(
    server: Server, file: Path, send: Callable[[Path], object], length: int, says: str
) -> None:
    """The pieces in which it is read are ours: what one of them has too much tells nobody anything."""
    start = {**START, "headers": [("content-length", str(length))]}
    due = f"the application sent {says} than its content-length declares: the response was cut there"
    before = server.stderr.count(due)
    response, report = send_messages(server, start, send(file))
    assert response.body == file.read_bytes()[:length]
    assert report["position"] is None, "a piece that is too long is taken as well, and nobody has left"
    server.wait_line(due, count=before + 1)


def test_head_is_answered_with_the_files_length(server: Server, file: Path) -> None:
    with server.connect() as client:
        response = client.ask(f"/send-path?{file}".replace(" ", "%20"), method="HEAD")
        assert response.header("content-length") == str(file.stat().st_size)
        client.assert_open()


@pytest.mark.parametrize(
    ("path", "error"),
    [("missing", "FileNotFoundError"), ("", "IsADirectoryError"), ("pipe", "OSError")],
)
def test_what_cannot_be_sent_raises_at_the_await(
    server: Server, tmp_path: Path, path: str, error: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    target = tmp_path / path
    _, report = send_messages(server, START, path_send(target))
    assert (report["position"], report["kind"]) == (1, f"builtins.{error}")
    assert str(target) in report["says"]


def test_what_is_no_regular_file_or_no_name_is_told_so(server: Server) -> None:
    _, report = send_messages(server, START, path_send("/dev/null"))
    assert report["kind"] == "builtins.OSError"
    assert "not a regular file" in report["says"]
    assert "zerocopysend" in report["says"]
    _, report = send_messages(server, START, path_send("/tmp/a\0b"))
    assert report["kind"] == "builtins.ValueError"
    assert "NUL" in report["says"]


def test_an_application_may_answer_otherwise_after_a_missing_file(server: Server, tmp_path: Path) -> None:
    with server.connect() as client:
        response = client.ask(f"/send-path?{tmp_path}/missing")
        assert (response.framing, response.body) == ("length", b"FileNotFoundError")
        client.assert_open()


def test_a_slow_reader_holds_the_file(server: Server, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(64 * 1024 * 1024))
    before = server.memory_peak()
    with server.connect(receive_buffer=4096) as client:
        client.send(f"GET /send-path?{large} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        client.read_until(b"\r\n\r\n")
        assert server.ask("/hello").body == b"hello"
        assert server.memory_peak() - before < 32 * 1024 * 1024


def test_a_client_that_leaves_is_told_to_the_application(server: Server, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(64 * 1024 * 1024))
    name = next(names)
    with server.connect() as client:
        client.send(f"GET /send-path?{large}&{name} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        client.read_until(b"\r\n\r\n")
    assert server.note(name) == "ClientDisconnected"


# --- an open file


@pytest.mark.parametrize(
    ("rest", "part"),
    [
        ("", slice(0, None)),
        (', "offset": 0', slice(0, None)),
        (', "offset": 100', slice(100, None)),
        (', "offset": 100, "count": 70_000', slice(100, 70_100)),
        (', "offset": 299_000, "count": 5_000', slice(299_000, None)),
        (', "offset": 400_000', slice(0, 0)),
        (', "count": 10', slice(0, 10)),
        (', "count": 0', slice(0, 0)),
        (', "offset": None, "count": None, "more_body": False', slice(0, None)),
    ],
)
def test_an_open_file_is_sent_in_part(server: Server, file: Path, rest: str, part: slice) -> None:
    response, report = send_messages(server, START, zero_copy(file, rest))
    assert report["position"] is None, report
    assert response.body == file.read_bytes()[part]


def test_files_and_bodies_take_turns(server: Server, file: Path) -> None:
    piece = zero_copy(file, ', "offset": 5, "count": 5, "more_body": True')
    response, _ = send_messages(server, START, {**BODY, "more_body": True}, piece, piece, BODY)
    assert response.body == b"body" + file.read_bytes()[5:10] * 2 + b"body"


def test_without_an_offset_the_files_position_moves(server: Server, file: Path) -> None:
    """And the descriptor stays the application's: it reads on after the `await`."""
    response = server.ask(f"/send-descriptor?{file}".replace(" ", "%20"))
    assert response.body == file.read_bytes()[10:120]


def test_a_pipe_is_sent_to_its_end(server: Server) -> None:
    response = server.ask("/send-pipe")
    assert (response.framing, response.body) == ("chunked", b"through a pipe")


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ('{"type": "http.response.zerocopysend"}', "without `file`"),
        ('{"type": "http.response.zerocopysend", "file": "text"}', "a file with a descriptor"),
        (zero_copy(Path(os.devnull), ', "offset": -1'), "`offset`"),
        (zero_copy(Path(os.devnull), ', "count": "all"'), "`count`"),
        ('{"type": "http.response.zerocopysend", "file": 1 << 20}', "descriptor 1048576; one that is open"),
        ('{"type": "http.response.zerocopysend", "file": -1}', "descriptor -1; one that is open"),
        (
            '{"type": "http.response.zerocopysend", "file": __import__("os").open("/dev/null", 1)}',
            "cannot be read (Bad file descriptor)",
        ),
        ('{"type": "http.response.pathsend"}', "without `path`"),
        ('{"type": "http.response.pathsend", "path": b"/"}', "a str"),
    ],
)
def test_a_malformed_file_message_says_what_was_due(server: Server, message: str, says: str) -> None:
    _, report = send_messages(server, START, message)
    assert report["position"] == 1
    assert says in report["says"]


@pytest.mark.parametrize("message", [path_send(__file__), zero_copy(Path(__file__))])
def test_a_file_needs_a_start_and_comes_before_the_end(server: Server, message: object) -> None:
    _, report = send_messages(server, message)
    assert "`http.response.start` was due" in report["says"]
    _, report = send_messages(server, START, BODY, message)
    assert "after the response had ended" in report["says"]


def test_an_answer_that_middleware_keeps_back_for_a_body_says_what_may_be_the_reason(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/silent").status == 500
    server.wait_line(
        "the application returned without starting its response; with --pathsend, middleware that waits "
        "for a body may have kept it back"
    )


# --- trailers


def read_trailers(client: Client) -> tuple[bytes, list[bytes]]:
    """Body and trailers of a chunked answer whose head was read."""
    body = b""
    while chunk := client.read_until(b"\r\n")[:-2]:
        if chunk == b"0":
            break
        body += client.read_exactly(int(chunk, 16))
        client.read_until(b"\r\n")
    fields = []
    while line := client.read_until(b"\r\n")[:-2]:
        fields.append(line)
    return body, fields


def ask_for_trailers(server: Server, *messages: object) -> tuple[dict[str, str], bytes, list[bytes]]:
    with server.connect() as client:
        client.send(
            b"POST /messages?name=trailers HTTP/1.1\r\nHost: test\r\nTE: trailers\r\n"
            b"Content-Length: %d\r\n\r\n" % len(code(messages)) + code(messages)
        )
        *_, headers, _ = client.read_head()
        body, fields = read_trailers(client)
        client.assert_open()
    return {name.lower(): value for name, value in headers}, body, fields


def test_trailers_follow_the_body(server: Server) -> None:
    head, body, fields = ask_for_trailers(server, PROMISE, {**BODY, "more_body": True}, BODY, TRAILERS)
    assert (body, fields) == (b"bodybody", [b"x-one: 1", b"x-two: 2"])
    # Where the machine was busy in between, the head has left before.
    assert head.get("trailer", "x-one, x-two") == "x-one, x-two"


def test_trailers_may_come_in_several_messages(server: Server) -> None:
    first = {**TRAILERS, "headers": [(b"x-zero", b"0")], "more_trailers": True}
    _, _, fields = ask_for_trailers(server, PROMISE, BODY, first, TRAILERS)
    assert fields == [b"x-zero: 0", b"x-one: 1", b"x-two: 2"]


def test_a_promise_may_be_kept_with_nothing(server: Server) -> None:
    _, body, fields = ask_for_trailers(server, PROMISE, BODY, {"type": "http.response.trailers"})
    assert (body, fields) == (b"body", [])


@pytest.mark.parametrize("target", ["announced", "silent", "whole", "large"])
def test_trailers_come_after_the_head_has_left_be_they_announced_or_not(server: Server, target: str) -> None:
    with server.connect() as client:
        for _ in range(2):
            client.send(f"GET /trailers?{target} HTTP/1.1\r\nHost: test\r\nTE: trailers\r\n\r\n".encode())
            *_, headers, _ = client.read_head()
            body, fields = read_trailers(client)
            assert body == (b"onetwo" if target != "large" else b"large" * 1_000_000)
            assert fields == [b"x-sum: 6", b"x-late: 1", b"x-late: 2"]
            announced = [value for name, value in headers if name.lower() == "trailer"]
            assert announced == (["X-Sum"] if target == "announced" else [])
        client.assert_open()


def test_what_comes_behind_trailers_is_the_next_answer(server: Server) -> None:
    request = b"GET /trailers HTTP/1.1\r\nHost: test\r\nTE: trailers\r\n\r\n"
    with server.connect() as client:
        client.send(request * 20 + b"GET /hello HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
        for _ in range(20):
            client.read_head()
            assert read_trailers(client)[1] == [b"x-sum: 6", b"x-late: 1", b"x-late: 2"]
        assert client.read_head()[1] == 200


def test_a_client_that_reads_slowly_gets_its_trailers(server: Server) -> None:
    with server.connect() as client:
        client.send(
            b"GET /trailers?large HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: close\r\n\r\n"
        )
        server.wait_line("the trailers of a large answer were sent")
        assert client.read_to_end().endswith(b"\r\n0\r\nx-sum: 6\r\nx-late: 1\r\nx-late: 2\r\n\r\n")


@pytest.mark.parametrize("different", [True, False])
def test_more_trailers_than_a_head_may_hold_are_refused_at_their_send(
    server: Server, different: bool
) -> None:
    names = [(f"x-{number if different else 1}", "1") for number in range(30_000)]
    many = [
        {**TRAILERS, "headers": names[:15_000], "more_trailers": True},
        {**TRAILERS, "headers": names[15_000:]},
    ]
    with server.connect() as client:
        body = code((PROMISE, BODY, *many))
        client.send(
            b"POST /messages?name=many-trailers HTTP/1.1\r\nHost: test\r\nTE: trailers\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        assert not client.read_to_any_end().endswith(b"\r\n\r\n")
    assert "than the 24576 that a response can hold" in server.note("many-trailers")["says"]


def test_links_of_hints_that_never_end_are_refused_at_their_send(server: Server) -> None:
    hint = '{"type": "http.response.early_hint", "links": __import__("itertools").repeat(b"<a>")}'
    _, report = send_messages(server, hint)
    assert report["says"] == "one header more came than the 24576 that a response can hold"


@pytest.mark.parametrize("takes", [(), TAKES_TRAILERS])
def test_where_trailers_have_no_place_the_answer_is_whole_without(
    server: Server, takes: tuple[tuple[str, str], ...]
) -> None:
    """No TE, or a declared length: what was promised is taken and dropped, and nothing announces it."""
    length = [("content-length", "4")] if takes else []
    start = {**PROMISE, "headers": [*length, ("trailer", "x-one")]}
    response, report = send_messages(server, start, BODY, TRAILERS, headers=takes)
    assert report["position"] is None, report
    assert response.body == b"body"
    assert response.header("trailer") is None


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ((START, BODY, TRAILERS), "was due before"),
        ((START, TRAILERS), "was due before"),
        ((PROMISE, TRAILERS), "before the last `http.response.body`"),
        ((PROMISE, BODY, TRAILERS, TRAILERS), "after the response had ended"),
        ((PROMISE, BODY, {**TRAILERS, "headers": [("content-length", "1")]}), "belongs into the headers"),
        ((PROMISE, BODY, {**TRAILERS, "headers": [("x", "a\nb")]}), "control character"),
        ((PROMISE, BODY, {**TRAILERS, "more_trailers": "yes"}), "a bool"),
    ],
)
def test_misplaced_trailers_say_what_was_due(server: Server, messages: tuple[object, ...], says: str) -> None:
    name = next(names)
    with server.connect() as client:
        client.send(
            f"POST /messages?name={name} HTTP/1.1\r\nHost: test\r\nTE: trailers\r\n"
            f"Content-Length: {len(code(messages))}\r\n\r\n".encode()
            + code(messages)
        )
        assert says in server.note(name)["says"]


def test_an_answer_without_its_promised_trailers_breaks_off(server: Server) -> None:
    with server.connect() as client:
        body = code((PROMISE, BODY))
        client.send(
            b"POST /messages?name=broken HTTP/1.1\r\nHost: test\r\nTE: trailers\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        assert not client.read_to_any_end().endswith(b"0\r\n\r\n")
    server.wait_line("returned without sending the trailers that it promised")


# --- text for bytes


def test_header_names_and_values_may_be_ascii_text(server: Server) -> None:
    response, report = send_messages(server, {**START, "headers": [("X-Name", "value"), ["x-b", b"c"]]}, BODY)
    assert report["position"] is None, report
    assert (response.header("x-name"), response.header("x-b")) == ("value", "c")


def test_text_beyond_ascii_is_refused(server: Server) -> None:
    _, report = send_messages(server, {**START, "headers": [("x-name", "é")]})
    assert report["position"] == 0
    assert "ASCII" in report["says"]


# --- the notice of the end


def test_a_stream_ends_itself_when_shutdown_begins(loop: str) -> None:
    with Server("asgi_app:app", "--loop", loop) as server, server.connect() as client:
        client.send(b"GET /until-shutdown HTTP/1.1\r\nHost: test\r\n\r\n")
        client.read_head()
        assert client.read_chunk() == b"not yet"
        server.stop()
        assert client.read_chunks() == [b"it has begun"]
