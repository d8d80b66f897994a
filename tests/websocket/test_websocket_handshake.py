"""The handshake of a WebSocket: which are taken, which are refused, and what the application sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Server, WebSocket, handshake, request
from harness.websocket import KEY, TEXT, frame

VERSION = ("Sec-WebSocket-Version", "13")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("websocket_app:app", env={"FORWARDED_ALLOW_IPS": ""}) as server:
        yield server


def test_a_handshake_is_answered_as_the_rfc_has_it(server: Server) -> None:
    with server.connect() as client:
        socket = WebSocket(client, "/echo")
        assert socket.response.header("upgrade") == "websocket"
        assert socket.response.header("connection") == "Upgrade"
        assert socket.response.header("sec-websocket-protocol") is None
        assert socket.response.header("sec-websocket-extensions") is None
        assert socket.response.header("content-length") is None
        assert socket.echo("hello") == "hello"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"without": ["Sec-WebSocket-Key"]}, 400),
        ({"headers": [("Sec-WebSocket-Key", KEY)]}, 400),
        ({"without": ["Sec-WebSocket-Key"], "headers": [("Sec-WebSocket-Key", "short")]}, 400),
        ({"without": ["Sec-WebSocket-Version"]}, 426),
        ({"without": ["Sec-WebSocket-Version"], "headers": [("Sec-WebSocket-Version", "12")]}, 426),
        ({"headers": [VERSION]}, 426),
        ({"method": "POST"}, 400),
        ({"method": "PUT", "body": b"x"}, 400),
        ({"version": "1.0"}, 400),
        ({"body": b"x"}, 400),
        ({"headers": [("Transfer-Encoding", "chunked")]}, 400),
        ({"headers": [("Sec-WebSocket-Protocol", "a b")]}, 400),
        ({"headers": [("Sec-WebSocket-Protocol", "caf\xe9")]}, 400),
        ({"headers": [("Sec-WebSocket-Protocol", "a\x0bb")]}, 400),
        ({"headers": [("Sec-WebSocket-Protocol", "a\x85b")]}, 400),
        ({"host": None}, 400),
    ],
)
def test_a_handshake_that_is_not_in_order_is_refused(
    server: Server, given: dict[str, object], status: int
) -> None:
    with server.connect() as client:
        client.send(handshake("/echo/refused", **given))  # type: ignore[arg-type]
        response = client.read_response()
        assert response.status == status
        assert response.closes
        if status == 426:
            assert response.header("sec-websocket-version") == "13"
            assert response.header("upgrade") == "websocket"
        client.assert_closed()
    assert "/echo/refused" not in server.ask("/seen").json()


def test_frames_that_come_with_the_handshake_are_refused_with_it(server: Server) -> None:
    with server.connect() as client:
        client.send(handshake("/echo") + frame(TEXT, b"early"))
        assert client.read_response().status == 400
        client.assert_closed()


def test_a_request_behind_a_handshake_that_is_accepted_is_a_broken_frame(server: Server) -> None:
    with server.connect() as client:
        client.send(handshake("/echo") + request("/hello/within"))
        assert client.read_response().status == 101
        assert client.read_exactly(4)[:1] + client.read_to_any_end()[:0] == b"\x88"
    assert "/hello/within" not in server.ask("/seen").json()


def test_what_comes_behind_a_handshake_that_the_application_refuses_is_no_request(server: Server) -> None:
    with server.connect() as client:
        client.send(handshake("/end?how=plain&when=before"))
        response = client.read_response()
        assert (response.status, response.body) == (403, b"")
        assert response.closes
        client.try_send(request("/hello/behind"))
        client.assert_closed()
    assert "/hello/behind" not in server.ask("/seen").json()


@pytest.mark.parametrize("behind", ["request", "frame"])
def test_what_comes_with_a_handshake_that_the_application_would_refuse_is_neither_request_nor_frame(
    server: Server, behind: str
) -> None:
    with server.connect() as client:
        extra = request("/hello/at-once") if behind == "request" else frame(TEXT, b"early")
        client.send(handshake("/end?how=plain&when=before") + extra)
        response = client.read_response()
        assert response.status in (400, 403)
        assert response.closes
        client.assert_closed()
    assert "/hello/at-once" not in server.ask("/seen").json()


@pytest.mark.parametrize("missing", ["Connection", "Upgrade"])
def test_a_request_that_names_one_of_both_is_an_ordinary_one(server: Server, missing: str) -> None:
    with server.connect() as client:
        client.send(handshake("/scope", without=[missing]))
        assert client.read_response().json() == "http"
        client.assert_open()


def test_with_ws_none_it_is_an_http_request() -> None:
    with Server("websocket_app:app", "--ws", "none") as server, server.connect() as client:
        client.send(handshake("/scope"))
        assert client.read_response().json() == "http"


@pytest.mark.parametrize("word", ["websockets", "websockets-sansio", "wsproto", "auto"])
def test_uvicorns_words_for_its_libraries_are_taken(word: str) -> None:
    from bridgehead import Config

    assert Config("websocket_app:app", ws=word).ws == word


def test_the_scope_says_what_was_asked(server: Server) -> None:
    headers = [
        ("Sec-WebSocket-Protocol", "chat, superchat"),
        ("Sec-WebSocket-Protocol", "v2"),
        ("Origin", "https://elsewhere.example"),
        ("Cookie", "a=b"),
    ]
    with server.connect() as client:
        socket = WebSocket(client, "/scope/a%20b?x=%20", headers=headers)
        assert socket.response.header("sec-websocket-protocol") == "v2"
        assert socket.response.header("x-mine") == "yes"
        assert socket.response.header("connection") == "Upgrade"
        assert socket.read_close() == (1000, "")
        port = client.port
    scope = server.note("scope")
    assert scope.pop("asgi") == {"version": "3.0", "spec_version": "2.5"}
    assert [b"origin", b"https://elsewhere.example"] in [
        [eval(name), eval(value)] for name, value in scope.pop("headers")
    ]
    assert scope == {
        "type": "websocket",
        "http_version": "1.1",
        "scheme": "ws",
        "path": "/scope/a b",
        "raw_path": repr(b"/scope/a%20b"),
        "query_string": repr(b"x=%20"),
        "root_path": "",
        "client": ["127.0.0.1", port],
        "server": ["127.0.0.1", server.port],
        "subprotocols": ["chat", "superchat", "v2"],
        "state": {},
    }
    assert server.note("extensions") == ["bridgehead.shutdown", "websocket.http.response"]


@pytest.mark.parametrize(("said", "scheme"), [("http", "ws"), ("https", "wss"), ("wss", "wss"), ("ws", "ws")])
def test_a_trusted_proxys_word_is_taken(said: str, scheme: str) -> None:
    with Server("websocket_app:app", "--request-id") as server, server.connect() as client:
        headers = [("X-Forwarded-For", "1.2.3.4"), ("X-Forwarded-Proto", said), ("X-Request-Id", "mine")]
        socket = WebSocket(client, "/scope", headers=headers)
        assert socket.response.header("x-request-id") == "mine"
        scope = server.note("scope")
        assert (scope["scheme"], scope["client"]) == (scheme, ["1.2.3.4", 0])
        assert scope["state"] == {"request_id": "mine"}
        line = server.wait_line("WebSocket /scope", stream="stdout")
        assert line == 'INFO:     1.2.3.4:0 - "WebSocket /scope" [accepted] request_id=mine\n'


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/echo?logged=1", "[accepted]"),
        ("/end?how=plain&when=before&logged=2", "403"),
        ("/end?how=raise&when=before&logged=3", "500"),
        ("/end?how=return&when=before&logged=4", "403"),
    ],
)
def test_a_handshake_leaves_one_line_as_in_uvicorn(target: str, said: str) -> None:
    with Server("websocket_app:app", allow=["Traceback"]) as server, server.connect() as client:
        client.send(handshake(target))
        client.read_response()
        line = server.wait_line("WebSocket", stream="stdout")
        assert line == f'INFO:     127.0.0.1:{client.port} - "WebSocket {target}" {said}\n'
