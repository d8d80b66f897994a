"""Which `Host` a request must have (RFC 9112 section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Server, assert_refused, request

MALFORMED = {
    "userinfo": b"user@test",
    "userinfo with a password": b"user:secret@test",
    "path": b"test/admin",
    "path and query": b"a/x?",
    "query": b"test?x",
    "fragment": b"test#x",
    "space inside": b"te st",
    "comma": b"test,other",
    "two after a comma": b"test, other",
    "backslash": b"te\\st",
    "scheme": b"http://test",
    "open bracket": b"[::1",
    "close bracket": b"::1]",
    "bare IPv6 address": b"::1",
    "rubbish in brackets": b"[no address]",
    "words after brackets": b"[::1]x",
    "port that is no number": b"test:80a",
    "port with a sign": b"test:+80",
    "port too large": b"test:65536",
    "port far too large": b"test:99999999999999999999",
    "two ports": b"test:80:80",
    "port alone": b":80",
    "quote": b'te"st',
    "angle brackets": b"<test>",
    "caret": b"te^st",
    "not ASCII": "tést".encode(),
    "escape that ends early": b"te%2",
    "escape of rubbish": b"te%zz",
    "tab inside": b"te\tst",
}

GOOD = [
    b"test",
    b"test:80",
    b"test:",
    b"TEST.example",
    b"127.0.0.1:8000",
    b"[::1]",
    b"[::1]:8000",
    b"under_score.example",
    b"xn--tst-bma.example",
    b"trailing.dot.",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("wire_app:app") as server:
        yield server


@pytest.mark.parametrize("target", [b"http://user:secret@test/hello", b"http://user@test/hello"])
def test_userinfo_in_the_target_is_the_targets_fault(server: Server, target: bytes) -> None:
    with server.connect() as client:
        client.send(b"GET %b HTTP/1.1\r\nHost: test\r\n\r\n" % target)
        answer = client.read_response()
    assert (answer.status, answer.closes) == (400, True)
    assert b"the request target must" in answer.body


def test_a_request_without_host_is_refused(server: Server) -> None:
    assert_refused(server, request("/hello", host=None), {400})


@pytest.mark.parametrize("second", ["test", "other", ""])
def test_a_request_with_two_hosts_is_refused(server: Server, second: str) -> None:
    assert_refused(server, request("/hello", headers=[("Host", second)]), {400})


@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_host_is_refused(server: Server, value: bytes) -> None:
    assert_refused(server, b"GET /hello HTTP/1.1\r\nHost: %b\r\n\r\n" % value, {400})


@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_host_is_refused_on_1_0_as_well(server: Server, value: bytes) -> None:
    assert_refused(server, b"GET /hello HTTP/1.0\r\nHost: %b\r\n\r\n" % value, {400})


@pytest.mark.parametrize("value", GOOD)
def test_a_good_host_reaches_the_application_as_it_came(server: Server, value: bytes) -> None:
    with server.connect() as client:
        client.send(b"GET /scope HTTP/1.1\r\nHost: %b\r\n\r\n" % value)
        response = client.read_response()
    assert response.status == 200
    assert ["host", value.decode()] in response.json()["headers"]


def test_http_1_0_needs_no_host(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/hello", version="1.0", host=None))
        assert client.read_response().status == 200


def test_two_hosts_on_1_0_are_refused(server: Server) -> None:
    assert_refused(server, request("/hello", version="1.0", headers=[("Host", "b")]), {400})


def test_an_empty_host_is_allowed_by_the_rfc_and_changes_nothing(server: Server) -> None:
    with server.connect() as client:
        client.send(b"GET /scope HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n")
        response = client.read_response()
        assert response.status in (200, 400)
        client.assert_closed()
