"""Which methods, targets and versions are served, and how a target reaches the application."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Server, assert_refused, request, seen

HOST = b"Host: test\r\n\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("wire_app:app") as server:
        yield server


@pytest.mark.parametrize(
    "method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE", "QUERY", "M-SEARCH"]
)
def test_a_method_reaches_the_application(server: Server, method: str) -> None:
    with server.connect() as client:
        assert client.ask("/scope", method=method).json()["method"] == method
        client.assert_open()


def test_head_reaches_the_application_as_head(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/scope", method="HEAD").status == 200
        client.assert_open()


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT test:443 HTTP/1.1\r\n",
        b"CONNECT test HTTP/1.1\r\n",
        b"CONNECT / HTTP/1.1\r\n",
        b"CONNECT http://test/hello HTTP/1.1\r\n",
        b"CONNECT test:443 HTTP/1.0\r\n",
        b"TRACE /hello HTTP/1.1\r\n",
        b"TRACE * HTTP/1.1\r\n",
        b"TRACE http://test/hello HTTP/1.1\r\nMax-Forwards: 0\r\n",
    ],
)
def test_connect_and_trace_are_refused(server: Server, head: bytes) -> None:
    before = seen(server)
    assert_refused(server, head + HOST, {400, 405, 501})
    assert seen(server) == before


@pytest.mark.parametrize(
    "line",
    [
        b"get /hello HTTP/1.1",
        b"Get /hello HTTP/1.1",
        b"G(T /hello HTTP/1.1",
        b"G@T /hello HTTP/1.1",
        b'G"T /hello HTTP/1.1',
        b"G\x00T /hello HTTP/1.1",
        b"G\xc3\x84T /hello HTTP/1.1",
        b"GET\t/hello HTTP/1.1",
        b"GET  /hello HTTP/1.1",
        b"GET /hello  HTTP/1.1",
        b"GET /hello HTTP/1.1 ",
        b" GET /hello HTTP/1.1",
        b"GET HTTP/1.1",
        b"GET  HTTP/1.1",
        b"GET /hello",
        b"GET",
        b"/hello HTTP/1.1",
        b"GET /hello HTTP/1.2",
        b"GET /hello HTTP/2.0",
        b"GET /hello HTTP/2",
        b"GET /hello HTTP/1.1x",
        b"GET /hello HTTP/1.10",
        b"GET /hello HTTP/01.1",
        b"GET /hello HTTP/4294967297.1",
        b"GET /hello http/1.1",
        b"GET /hello HTTPS/1.1",
        b"GET /hello HTTP/ 1.1",
        b"GET /hello HTTP 1.1",
        b"GET /hello\rX HTTP/1.1",
        b"GET /hello XTTP/1.1",
        b"M" * 10_000 + b" /hello HTTP/1.1",
    ],
)
def test_a_malformed_request_line_is_refused(server: Server, line: bytes) -> None:
    assert_refused(server, line + b"\r\n" + HOST, {400, 405, 431, 501, 505})


@pytest.mark.parametrize(
    "target",
    [
        b"hello",
        b"../hello",
        b"test:80",
        b"?hello",
        b"*",
        b"*/hello",
        b"#fragment",
        b"/hello#fragment",
        b"/hello?x#fragment",
        b"/hel\x01lo",
        b"/hel\x7flo",
        b"/hel\x00lo",
        b"http:/hello",
        b"http:///hello",
        b"http://",
        b"http://user@test/hello",
        b"http://te st/hello",
        b"http://test:port/hello",
        b"http://test:65536/hello",
        b"://test/hello",
        b"1http://test/hello",
        b"/hello/\xc3\xa9",
        b"/hello?\xff",
        b"http://test/\x80",
    ],
)
def test_a_malformed_target_is_refused(server: Server, target: bytes) -> None:
    assert_refused(server, b"GET " + target + b" HTTP/1.1\r\n" + HOST, {400})


@pytest.mark.parametrize(
    ("target", "path", "raw_path", "query"),
    [
        ("/scope", "/scope", "/scope", ""),
        ("/scope?", "/scope", "/scope", ""),
        ("/scope?a=1&b=%20+", "/scope", "/scope", "a=1&b=%20+"),
        ("/scope?a?b", "/scope", "/scope", "a?b"),
        ("/scope/a%20b", "/scope/a b", "/scope/a%20b", ""),
        ("/scope/%C3%A9", "/scope/é", "/scope/%C3%A9", ""),
        ("/scope/%2F%2f", "/scope///", "/scope/%2F%2f", ""),
        ("/scope/%00", "/scope/\x00", "/scope/%00", ""),
        ("/scope/%0d%0aX:%20y", "/scope/\r\nX: y", "/scope/%0d%0aX:%20y", ""),
        ("/scope/%", "/scope/%", "/scope/%", ""),
        ("/scope/%zz%4", "/scope/%zz%4", "/scope/%zz%4", ""),
        ("/scope/+", "/scope/+", "/scope/+", ""),
        ("/scope/..;/x", "/scope/..;/x", "/scope/..;/x", ""),
        ("/scope/../x/./y", "/scope/../x/./y", "/scope/../x/./y", ""),
        ("//scope//x", "//scope//x", "//scope//x", ""),
        ("/scope/a:b@c!$&'()*,;=~-._", "/scope/a:b@c!$&'()*,;=~-._", "/scope/a:b@c!$&'()*,;=~-._", ""),
        ("/scope/%25%32%30", "/scope/%20", "/scope/%25%32%30", ""),
    ],
)
def test_a_path_is_decoded_once_and_kept_raw(
    server: Server, target: str, path: str, raw_path: str, query: str
) -> None:
    with server.connect() as client:
        scope = client.ask(target).json()
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == (path, raw_path, query)


@pytest.mark.parametrize("target", [b"/scope/a\\b", b"/scope/{x}|^`", b'/scope/"'])
def test_bytes_that_are_no_part_of_a_path_are_refused_or_kept_exactly(server: Server, target: bytes) -> None:
    with server.connect() as client:
        client.send(b"GET " + target + b" HTTP/1.1\r\nConnection: close\r\n" + HOST)
        response = client.read_response()
        client.assert_closed()
    assert response.status in (200, 400)
    if response.status == 200:
        assert response.json()["raw_path"].encode("latin-1") == target


@pytest.mark.parametrize(
    ("target", "host", "path", "raw_path"),
    [
        ("http://other/scope?x=1", "other", "/scope", "/scope"),
        ("http://other:8080/scope/%20", "other:8080", "/scope/ ", "/scope/%20"),
        ("HTTP://other/scope", "other", "/scope", "/scope"),
        ("https://other/scope", "other", "/scope", "/scope"),
        ("http://[::1]:80/scope", "[::1]:80", "/scope", "/scope"),
    ],
)
def test_the_host_of_an_absolute_target_replaces_the_header(
    server: Server, target: str, host: str, path: str, raw_path: str
) -> None:
    with server.connect() as client:
        scope = client.ask(target).json()
    assert (scope["path"], scope["raw_path"]) == (path, raw_path)
    assert [value for name, value in scope["headers"] if name == "host"] == [host]


def test_an_absolute_target_without_a_path_is_the_root(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("http://other").status == 404
        assert client.ask("http://other?x").status == 404
    assert seen(server)[-2:] == ["/", "/"]


def test_an_absolute_target_still_needs_a_host_header(server: Server) -> None:
    assert_refused(server, request("http://other/hello", host=None), {400})


def test_options_of_the_whole_server_is_answered(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("*", method="OPTIONS").status in (200, 204, 404)
        client.assert_open()


def test_a_target_of_8000_bytes_is_served(server: Server) -> None:
    with server.connect() as client:
        target = "/scope?" + "q" * 7990
        assert client.ask(target).json()["query_string"] == "q" * 7990


def test_a_target_of_a_megabyte_is_refused(server: Server) -> None:
    with server.connect() as client:
        client.try_send(b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\n" + HOST)
        answer = client.read_to_any_end()
    assert answer == b"" or answer.startswith((b"HTTP/1.1 414 ", b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
    assert server.ask("/hello").status == 200
