"""One line a request on stdout, in uvicorn's shape, that no client can break and no pipe can stall."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import UVICORN, Client, Server, has_ipv6, request


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("wire_app:app", allow=["Traceback"]) as server:
        yield server


@pytest.mark.parametrize(
    ("method", "target", "version", "status"),
    [
        ("GET", "/hello", "1.1", "200 OK"),
        ("GET", "/hello?x=1&y=%20", "1.1", "200 OK"),
        ("HEAD", "/hello?head", "1.1", "200 OK"),
        ("POST", "/echo?post", "1.1", "200 OK"),
        ("GET", "/hello?old", "1.0", "200 OK"),
        ("GET", "/nowhere", "1.1", "404 Not Found"),
        ("GET", "/status?status=204", "1.1", "204 No Content"),
        ("GET", "/status?status=418", "1.1", "418 I'm a Teapot"),
        ("GET", "/status?status=503", "1.1", "503 Service Unavailable"),
        ("GET", "/fail?when=before", "1.1", "500 Internal Server Error"),
        ("GET", "/hello/a%20b%22c", "1.1", "200 OK"),
    ],
)
def test_a_request_leaves_one_line(
    server: Server, method: str, target: str, version: str, status: str
) -> None:
    with server.connect() as client:
        port = client.port
        client.send(request(target, method=method, version=version))
        client.read_response(method=method)
        expected = f'INFO:     127.0.0.1:{port} - "{method} {target} HTTP/{version}" {status}\n'
        assert server.wait_line(f"127.0.0.1:{port} - ", stream="stdout").lower() == expected.lower()


def test_an_unknown_status_has_no_phrase(server: Server) -> None:
    with server.connect() as client:
        client.ask("/status?status=299")
        line = server.wait_line(f"127.0.0.1:{client.port} - ", stream="stdout")
    assert line.rstrip().endswith('HTTP/1.1" 299')


def test_requests_of_one_connection_are_logged_in_order(server: Server) -> None:
    with server.connect() as client:
        for number in range(50):
            client.ask(f"/hello?number={number}")
        server.wait_line(f"127.0.0.1:{client.port} - ", stream="stdout", count=50)
        lines = [line for line in server.stdout.splitlines() if f"127.0.0.1:{client.port} - " in line]
    assert [int(number) for line in lines for number in re.findall(r"number=(\d+)", line)] == list(range(50))


def test_nothing_but_requests_is_on_stdout(server: Server) -> None:
    server.ask("/hello?shape")
    server.wait_line("/hello?shape", stream="stdout")
    shape = re.compile(r'INFO:     127\.0\.0\.1:\d+ - "[A-Z]+ \S+ HTTP/1\.[01]" \d{3}( .*)?')
    for line in server.stdout.splitlines():
        assert shape.fullmatch(line), line


@pytest.mark.parametrize(
    "target",
    [
        b'/hello?quote="',
        b'/hello?forged="%20200%20OK',
        b"/hello?back\\slash",
        b"/hello?\xc2\x85next-line",
        b"/hello?\x9b31mcolour",
        b"/hello?\xe2\x80\xa8line-separator",
        b"/hello?\xff",
        b"/hello?%1b[31m%0d%0aINFO:%20forged",
    ],
)
def test_no_client_can_break_the_line(server: Server, target: bytes) -> None:
    with server.connect() as client:
        port = client.port
        client.send(b"GET " + target + b" HTTP/1.1\r\nHost: test\r\n\r\n")
        if client.read_response().status == 400:
            return
        line = server.wait_line(f"127.0.0.1:{port} - ", stream="stdout")
    found = re.fullmatch(r'INFO:     127\.0\.0\.1:\d+ - "(.*)" 200 OK\n', line)
    assert found, line
    logged = found[1]
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", logged)
    assert not re.search(r'(?<!\\)(\\\\)*"', logged), "a bare quote ends the field early"


def test_an_aborted_answer_is_logged_too(server: Server) -> None:
    with server.connect() as client:
        port = client.port
        client.send(request("/fail?when=body"))
        client.read_to_any_end()
    server.wait_line(f"127.0.0.1:{port} - ", stream="stdout")


def ask_raw(server: Server, head: bytes) -> str:
    """The access line of this head's request, after the client's address."""
    with server.connect() as client:
        client.send(head)
        client.read_response()
        line = server.wait_line(f"127.0.0.1:{client.port} - ", stream="stdout")
    return line.partition(" - ")[2].rstrip("\n")


@pytest.mark.skipif(UVICORN, reason="uvicorn escapes otherwise, or not at all")
@pytest.mark.parametrize(
    ("target", "logged"),
    [
        (b"/hello?a=%22%0d%0a%1b", "/hello?a=%22%0d%0a%1b"),
        (b'/hello/a"b"', r"/hello/a\x22b\x22"),
        (b"/hello?a\\b", r"/hello?a\x5cb"),
        (b"/hello?{}|^`[]", "/hello?{}|^`[]"),
        (b"/hello/../hello//x/./", "/hello/../hello//x/./"),
        (b"/hello?a?b=c?", "/hello?a?b=c?"),
        (b"http://elsewhere/hello?a=b", "/hello?a=b"),
        (b"http://elsewhere?a=b", "/?a=b"),
    ],
)
def test_odd_targets_are_logged_as_they_came(server: Server, target: bytes, logged: str) -> None:
    line = ask_raw(server, b"GET " + target + b" HTTP/1.1\r\nHost: test\r\n\r\n")
    assert line.startswith(f'"GET {logged} HTTP/1.1" '), line


@pytest.mark.skipif(UVICORN, reason="uvicorn escapes otherwise, or not at all")
def test_a_root_path_is_in_front_of_what_is_logged_as_a_target_has_it() -> None:
    with Server("rooted_app:app", "--root-path", '/api "v1"') as server:
        for target, logged in {
            "/x%20y?z": "/api%20%22v1%22/x%20y?z",
            "/": "/api%20%22v1%22/",
            "http://elsewhere/x": "/api%20%22v1%22/x",
        }.items():
            line = ask_raw(server, request(target))
            assert line == f'"GET {logged} HTTP/1.1" 200 OK'


@pytest.mark.skipif(UVICORN, reason="uvicorn does not know the asterisk form")
def test_the_whole_server_is_logged_as_an_asterisk() -> None:
    with Server("rooted_app:app", "--root-path", "/api") as server:
        assert ask_raw(server, request("*", method="OPTIONS")) == '"OPTIONS * HTTP/1.1" 200 OK'


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
@pytest.mark.parametrize("host", ["::1", "::"])
def test_a_client_of_ipv6_is_logged_with_its_address(host: str) -> None:
    with Server("wire_app:app", "--host", host) as server, Client(("::1", server.port)) as client:
        assert client.ask("/hello").status == 200
        line = server.wait_line("/hello", stream="stdout")
        assert line == f'INFO:     ::1:{client.port} - "GET /hello HTTP/1.1" 200 OK\n'


@pytest.mark.skipif(not has_ipv6() or UVICORN, reason="no IPv6 here, or not dual-stack")
def test_a_client_of_ipv4_on_a_dual_stack_socket_is_logged_as_one() -> None:
    with Server("wire_app:app", "--host", "::") as server, server.connect() as client:
        assert client.ask("/hello").status == 200
        line = server.wait_line("/hello", stream="stdout")
        assert line == f'INFO:     127.0.0.1:{client.port} - "GET /hello HTTP/1.1" 200 OK\n'


def test_a_client_of_a_unix_socket_has_no_address(tmp_path: Path) -> None:
    path = str(tmp_path / "server.sock")
    with Server("wire_app:app", "--uds", path) as server, Client(path) as client:
        assert client.ask("/hello").status == 200
        line = server.wait_line("/hello", stream="stdout")
        assert line == 'INFO:      - "GET /hello HTTP/1.1" 200 OK\n'


@pytest.mark.skipif(UVICORN, reason="uvicorn logs no request without an answer")
@pytest.mark.parametrize("framing", [b"Content-Length: 9", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("leave", ["half_close", "reset"])
def test_an_upload_that_is_cut_off_is_a_499(server: Server, framing: bytes, leave: str) -> None:
    name = f"cut-{leave}-{framing[:1].decode()}"
    target = f"/collect?name={name}"
    with server.connect() as client:
        client.send(f"POST {target} HTTP/1.1\r\nHost: test\r\n".encode() + framing + b"\r\n\r\n4\r\nh")
        server.note(f"{name}-began")
        getattr(client, leave)()
        line = server.wait_line(f"{target} ", stream="stdout")
    assert line.rstrip().endswith(f'"POST {target} HTTP/1.1" 499')


@pytest.mark.skipif(UVICORN, reason="uvicorn closes without a word")
def test_a_framing_that_breaks_while_the_application_reads_is_a_400(server: Server) -> None:
    target = "/collect?name=broken"
    with server.connect() as client:
        port = client.port
        client.send(f"POST {target} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        client.send(b"4\r\nbody\r\n")
        server.note("broken-began")
        client.send(b"zz\r\n")
        response = client.read_response()
        assert (response.status, response.closes) == (400, True)
        client.assert_closed()
    assert server.note("broken")["complete"] is False
    line = server.wait_line(f"127.0.0.1:{port} - ", stream="stdout")
    assert line.rstrip().endswith(f'"POST {target} HTTP/1.1" 400 Bad Request')


REFUSED = {
    "malformed": (b"GET /hello HTTP/1.1\r\nno colon\r\n\r\n", "400 Bad Request"),
    "no HTTP": (b"\x16\x03\x01\x02\x00\r\n\r\n", "400 Bad Request"),
    "control character": (b"GET /hello\x1b[31m HTTP/1.1\r\nHost: test\r\n\r\n", "400 Bad Request"),
    "quote in a query": (b'GET /hello?" HTTP/1.1\r\nHost: test\r\n\r\n', "400 Bad Request"),
    "long target": (b"GET /" + b"x" * 65_535 + b" HTTP/1.1\r\n\r\n", "414 URI Too Long"),
    "long head": (b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000, "431 Request Header Fields Too Large"),
    "many headers": (
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n",
        "431 Request Header Fields Too Large",
    ),
}


@pytest.mark.skipif(UVICORN, reason="uvicorn logs no head that it cannot read")
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("family", ["tcp", "unix"])
def test_a_head_that_could_not_be_read_is_a_dash(tmp_path: Path, family: str, name: str) -> None:
    head, status = REFUSED[name]
    path = str(tmp_path / "server.sock")
    options = ["--uds", path] if family == "unix" else []
    with Server("wire_app:app", *options) as server:
        with Client(path) if family == "unix" else server.connect() as client:
            address = "" if family == "unix" else f"127.0.0.1:{client.port}"
            client.try_send(head)
            # What was not read of a head makes the kernel reset the connection, maybe before the answer.
            raw = client.read_to_any_end()
        assert raw == b"" or raw.startswith(f"HTTP/1.1 {status}\r\n".encode())
        assert server.wait_line('"-"', stream="stdout") == f'INFO:     {address} - "-" {status}\n'
        server.stop()
        assert server.stdout.count("\n") == 1


@pytest.mark.skipif(UVICORN, reason="uvicorn logs no head that it cannot read")
def test_a_head_that_could_not_be_read_is_logged_though_its_client_has_left() -> None:
    with Server("wire_app:app") as server:
        for number in range(1, 21):
            client = server.connect()
            client.send(b"no http\r\n\r\n")
            client.close()
            server.wait_line('"-" 400 Bad Request', stream="stdout", count=number)


def test_no_access_log_keeps_stdout_empty() -> None:
    with Server("wire_app:app", "--no-access-log") as server:
        assert server.ask("/hello").status == 200
        server.stop()
        assert server.stdout == ""


def test_all_lines_are_there_when_the_server_has_ended() -> None:
    with Server("wire_app:app") as server:
        with server.connect() as client:
            for _ in range(500):
                client.send(request("/hello?counted"))
                client.read_response()
        server.stop()
        assert server.stdout.count("/hello?counted") == 500


def test_colours_can_be_asked_for_and_refused() -> None:
    with Server("wire_app:app", "--use-colors") as server:
        server.ask("/hello")
        assert "\x1b[" in server.wait_line("/hello", stream="stdout")
        assert "\x1b[" in server.stderr
    with Server("wire_app:app", "--no-use-colors") as server:
        server.ask("/hello")
        assert "\x1b[" not in server.wait_line("/hello", stream="stdout")
        assert "\x1b[" not in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn blocks on a stalled pipe")
def test_a_stalled_pipe_blocks_no_request_and_the_lost_lines_are_counted() -> None:
    reading, writing = os.pipe()
    try:
        with Server("wire_app:app", stdout=writing) as server:
            os.close(writing)
            writing = -1
            filler = "q" * 1000
            with server.connect() as client:
                for _ in range(2000):
                    assert client.ask(f"/hello?{filler}").status == 200
            seen = b""
            os.set_blocking(reading, False)
            after = 0
            # Drain, ask again, until a line about the lost ones has come through or been written beside.
            while b"dropped" not in seen and "dropped" not in server.stderr:
                try:
                    seen += os.read(reading, 1 << 20)
                except BlockingIOError:
                    after += 1
                    assert after < 1000, "nobody told how many lines were dropped"
                    server.ask("/hello?after")
            said = seen.decode("latin-1") + server.stderr
            assert re.search(r"\d+ .*dropped|dropped .*\d+", said)
    finally:
        os.close(reading)
        if writing != -1:
            os.close(writing)


@pytest.mark.skipif(UVICORN, reason="uvicorn blocks on a stalled pipe")
def test_lines_that_a_stalled_pipe_never_took_are_told_of_at_the_end() -> None:
    reading, writing = os.pipe()
    try:
        with Server("wire_app:app", stdout=writing) as server:
            os.close(writing)
            writing = -1
            with server.connect() as client:
                for _ in range(200):
                    client.ask(f"/hello?{'q' * 1000}")
            server.stop()
            told = re.search(r"(\d+) access lines may be lost: their reader is too slow", server.stderr)
            assert told, server.stderr
            os.set_blocking(reading, False)
            assert 200 - os.read(reading, 1 << 20).count(b"\n") <= int(told[1]) <= 200
    finally:
        os.close(reading)
        if writing != -1:
            os.close(writing)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_stops_no_request() -> None:
    with open("/dev/full", "wb") as full, Server("wire_app:app", stdout=full.fileno()) as server:
        with server.connect() as client:
            for _ in range(100):
                assert client.ask("/hello").status == 200
        server.stop()


@pytest.mark.skipif(UVICORN, reason="uvicorn fails on a closed pipe")
def test_a_closed_pipe_stops_no_request() -> None:
    reading, writing = os.pipe()
    with Server("wire_app:app", stdout=writing) as server:
        os.close(writing)
        os.close(reading)
        with server.connect() as client:
            for _ in range(100):
                assert client.ask("/hello").status == 200
