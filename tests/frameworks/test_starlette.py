"""A Starlette application end to end, through httpx."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from harness import ClosedError, Server, request

from bridgehead.pytest_plugin import MakeClient


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "file.bin"
    path.write_bytes(os.urandom(3_000_000))
    return path


@pytest.fixture(scope="module", params=["app", "with_middleware"])
def server(request: pytest.FixtureRequest, loop: str, path: Path) -> Iterator[Server]:
    with Server(
        f"starlette_app:{request.param}", "--loop", loop, env={"TEST_FILE": str(path)}, allow=["Traceback"]
    ) as server:
        yield server


@pytest.fixture(scope="module")
def plain_server(loop: str) -> Iterator[Server]:
    """Without middleware: `BaseHTTPMiddleware` and gzip hide some ends of a client or of a stream."""
    with Server("starlette_app:app", "--loop", loop, allow=["Traceback"]) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=15, trust_env=False) as client:
        yield client


def test_a_plain_answer(client: httpx.Client) -> None:
    assert client.get("/hello/there").text == "hello there"


def test_a_missing_route_is_a_404(client: httpx.Client) -> None:
    assert client.get("/missing").status_code == 404


def test_an_http_exception_is_its_status(client: httpx.Client) -> None:
    response = client.get("/teapot")
    assert (response.status_code, response.text) == (418, "a teapot")


def test_an_exception_is_a_500_and_the_next_request_is_served(client: httpx.Client) -> None:
    assert client.get("/fail").status_code == 500
    assert client.get("/hello").status_code == 200


def test_a_body_is_echoed(client: httpx.Client) -> None:
    body = bytes(range(256)) * 1000
    assert client.post("/echo", content=body).content == body


def test_a_streamed_upload_is_echoed_as_a_stream(client: httpx.Client) -> None:
    pieces = [bytes([number]) * 5000 for number in range(100)]
    response = client.post("/echo-stream", content=iter(pieces))
    assert response.content == b"".join(pieces)


def test_a_form_with_a_file_is_read(client: httpx.Client) -> None:
    content = os.urandom(2_000_000)
    response = client.post("/form", files={"file": ("name.bin", content)}, data={"note": "kept"})
    assert response.json() == {"name": "name.bin", "size": 2_000_000, "note": "kept"}


@pytest.mark.parametrize("count", [0, 1, 10, 5000])
def test_a_streaming_response_is_complete(client: httpx.Client, count: int) -> None:
    assert client.get("/stream", params={"count": count}).text == "".join(f"{n}\n" for n in range(count))


def test_a_file_is_sent_whole(client: httpx.Client, path: Path) -> None:
    response = client.get("/file")
    assert hashlib.sha256(response.content).digest() == hashlib.sha256(path.read_bytes()).digest()
    assert response.headers["etag"]
    assert "download.bin" in response.headers["content-disposition"]


def test_a_range_of_a_file_is_sent(client: httpx.Client, path: Path) -> None:
    response = client.get("/file", headers={"Range": "bytes=1000-1999"})
    assert response.status_code == 206
    assert response.content == path.read_bytes()[1000:2000]


def test_the_head_of_a_file_has_its_length(client: httpx.Client) -> None:
    response = client.head("/file")
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-length"] == "3000000"


def test_static_files_are_served_and_not_modified_has_no_body(client: httpx.Client) -> None:
    first = client.get("/static/starlette_app.py")
    assert "A Starlette application" in first.text
    again = client.get("/static/starlette_app.py", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/hello").status_code == 200


def test_background_tasks_run_after_the_answer(client: httpx.Client) -> None:
    assert client.get("/background").text == "answered"
    assert client.get("/event").text == "async background"


def test_a_redirect_goes_to_the_host_that_was_asked(server: Server, client: httpx.Client) -> None:
    response = client.get("/redirect", follow_redirects=True)
    assert response.text == "hello world"
    assert response.history[0].headers["location"] == f"{server.url}/hello"


def test_cookies_go_both_ways(client: httpx.Client) -> None:
    client.cookies.set("sent", "yes")
    response = client.get("/cookies")
    assert response.json() == {"sent": "yes"}
    assert len(response.headers.get_list("set-cookie")) == 2


def test_a_blocking_handler_runs_in_a_thread(client: httpx.Client) -> None:
    assert client.get("/blocking").text == "from a thread"


def test_the_lifespans_state_is_on_the_request(client: httpx.Client) -> None:
    assert client.get("/state").json() == {"number": 42}


def test_a_client_that_leaves_an_endless_stream_ends_it(
    server: Server, client: httpx.Client, resetting_client: MakeClient
) -> None:
    leaving = resetting_client(server, "/endless")
    # The head, and then what is streamed.
    while b"tick" not in (came := leaving.wait_for_bytes()):
        assert came
    leaving.close()
    assert client.get("/event").text == "endless finished"


@pytest.mark.parametrize("target", ["/stream?count=5000", "/file", "/hello"])
def test_a_half_closed_client_gets_its_whole_answer(
    server: Server, half_closing_client: MakeClient, target: str
) -> None:
    leaving = half_closing_client(server, target)
    assert leaving.answer().body == server.ask(target).body
    assert leaving.wait_for_end() == b""


def test_a_half_closed_client_gets_what_is_sent_after_its_leaving_was_told(
    plain_server: Server, half_closing_client: MakeClient
) -> None:
    leaving = half_closing_client(plain_server, "/told-stream")
    lines = b"".join(b"%d\n" % number for number in range(1000))
    assert leaving.answer().body == b"begun, " + lines
    assert leaving.wait_for_end() == b""
    assert plain_server.ask("/event").body == b"told stream finished"


def test_a_client_that_leaves_is_seen_by_is_disconnected(
    plain_server: Server, resetting_client: MakeClient
) -> None:
    leaving = resetting_client(plain_server, "/wait-for-disconnect")
    assert plain_server.ask("/event").body == b"waiting"
    leaving.close()
    assert plain_server.ask("/event").body == b"disconnected"


def test_a_client_that_leaves_its_upload_raises_client_disconnect(
    server: Server, client: httpx.Client
) -> None:
    connection = server.connect()
    connection.send(b"POST /read-half HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345")
    assert client.get("/event").text == "reading"
    connection.reset()
    assert client.get("/event").text == "client disconnected"


def test_a_stream_that_fails_never_looks_complete(plain_server: Server) -> None:
    with plain_server.connect() as connection:
        connection.send(request("/failing-stream"))
        with pytest.raises(ClosedError):
            connection.read_response()


def test_middleware_sees_every_answer(client: httpx.Client) -> None:
    response = client.get("/hello", headers={"Origin": "http://elsewhere", "Accept-Encoding": "gzip"})
    large = client.get("/stream?count=5000", headers={"Accept-Encoding": "gzip"})
    if "x-middleware" in response.headers:
        assert response.headers["x-middleware"] == "/hello"
        assert response.headers["access-control-allow-origin"] == "*"
        assert large.headers["content-encoding"] == "gzip"
    assert len(large.text.splitlines()) == 5000
