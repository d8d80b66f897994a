"""Flask and Django over WSGI, end to end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Server, request

APPS = {"flask": "flask_app:app", "django": "django_wsgi_app:application"}
FORM = (
    b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\ntea\r\n'
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    + b"f" * 300_000
    + b"\r\n--x--\r\n"
)


@pytest.fixture(scope="module", params=APPS)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    pytest.importorskip(name)
    return name


@pytest.fixture(scope="module")
def server(framework: str) -> Iterator[Server]:
    options = ("--interface", "wsgi", "--root-path", "/shop")
    with Server(APPS[framework], *options, allow=["Traceback"]) as server:
        yield server


def test_a_view_answers(server: Server, framework: str) -> None:
    assert server.ask("/").body.decode() == f"hello from {framework.capitalize()}"


def test_a_view_sees_where_it_is(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/url", host="shop.example:81"))
        seen = client.read_response().json()
    assert seen == {
        "url": "http://shop.example:81/shop/url",
        "root": "/shop",
        "remote": "127.0.0.1",
        "scheme": "http",
    }


def test_a_form_with_an_upload_arrives(server: Server) -> None:
    with server.connect() as client:
        headers = [("Content-Type", "multipart/form-data; boundary=x")]
        client.send(request("/form", method="POST", headers=headers, body=FORM))
        assert client.read_response().json() == {"name": "tea", "file": "a.bin", "size": 300_000}


def test_a_chunked_upload_is_answered_and_the_connection_lives(server: Server) -> None:
    with server.connect() as client:
        head = b"POST /form HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n"
        client.send(head + b"Content-Type: text/plain\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        assert client.read_response().status in (400, 500)
        client.send(request("/"))
        assert client.read_response().status == 200


def test_a_stream_arrives_whole(server: Server) -> None:
    rows = server.ask("/stream").body.split(b"\n")
    assert (len(rows), rows[999]) == (1001, b"row 999")


def test_an_error_of_a_view_is_a_500(server: Server) -> None:
    assert server.ask("/error").status == 500
    assert server.ask("/").status == 200


def test_flask_keeps_a_session(server: Server, framework: str) -> None:
    if framework != "flask":
        pytest.skip("Flask's")
    first = server.ask("/count")
    cookie = (first.header("set-cookie") or "").split(";")[0]
    with server.connect() as client:
        client.send(request("/count", headers=[("Cookie", cookie)]))
        assert client.read_response().body == b"2"
