"""WebSockets over HTTP/2 (RFC 8441): each is a stream of its own, and an application sees no difference.

What frames come to, `tests/websocket` has: it is the same code.
"""

from __future__ import annotations

import json
import ssl
import zlib
from collections.abc import Iterator
from signal import SIGTERM

import pytest
from harness import UVICORN, Server
from harness.http2 import Http2Client, StreamWebSocket, begin_websocket
from harness.websocket import BINARY, PING, PONG, TEXT, Frame, frame

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has none over HTTP/2")

TAIL = b"\x00\x00\xff\xff"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("websocket_app:app") as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Http2Client]:
    with Http2Client(server.port) as client:
        yield client


def test_a_websocket_is_a_stream_beside_others(server: Server, client: Http2Client) -> None:
    assert client.takes_connects()
    first = StreamWebSocket(client, "/echo?note=first")
    second = StreamWebSocket(client, "/echo?note=second")
    assert first.echo("one") == "one"
    assert second.echo("two") == "two"
    assert client.ask("/scope").body == b'"http"'
    first.send(frame(PING, b"there?"))
    assert first.read_frame() == Frame(PONG, b"there?")
    large = bytes(range(256)) * 1000
    second.send(frame(BINARY, large))
    assert second.read_frame().payload == large
    assert first.close(3000, "bye") == (3000, "bye")
    assert server.note("first") == {"type": "websocket.disconnect", "code": 3000, "reason": "bye"}
    assert second.echo("still") == "still"
    client.reset(second.stream)
    assert server.note("second") == {"type": "websocket.disconnect", "code": 1006, "reason": ""}
    assert client.ask("/scope").status == 200


def test_the_scope_and_the_answer_are_as_rfc_8441_has_them(server: Server, client: Http2Client) -> None:
    offers = [
        ("sec-websocket-protocol", "one, two"),
        ("sec-websocket-extensions", "permessage-deflate"),
        ("origin", "http://elsewhere"),
    ]
    socket = StreamWebSocket(client, "/scope?a=b", headers=offers)
    answer = dict(socket.answer.headers)
    assert answer["sec-websocket-protocol"] == "two"
    assert answer["sec-websocket-extensions"] == "permessage-deflate; server_max_window_bits=12"
    assert answer["x-mine"] == "yes"
    assert not {"upgrade", "connection", "sec-websocket-accept"} & set(answer)
    scope = server.note("scope")
    assert (scope["type"], scope["http_version"], scope["scheme"]) == ("websocket", "2", "ws")
    assert (scope["path"], scope["subprotocols"]) == ("/scope", ["one", "two"])
    names = {name for name, _ in scope["headers"]}
    assert "method" not in scope
    assert server.note("extensions") == ["bridgehead.shutdown", "websocket.http.response"]
    assert len(names) == len(scope["headers"])
    assert socket.read_frame().closing == (1000, "")


def test_messages_are_compressed(client: Http2Client) -> None:
    socket = StreamWebSocket(client, "/echo", headers=[("sec-websocket-extensions", "permessage-deflate")])
    press = zlib.compressobj(wbits=-15)
    words = b"the same again and again, " * 100
    payload = press.compress(words) + press.flush(zlib.Z_SYNC_FLUSH)
    socket.send(frame(TEXT, payload.removesuffix(TAIL), reserved=4))
    came = socket.read_frame()
    assert zlib.decompressobj(-12).decompress(came.payload + TAIL) == words


def test_what_is_not_in_order_is_refused(client: Http2Client) -> None:
    answer = client.answer(begin_websocket(client, "/echo", version="12"))
    assert (answer.status, answer.header("sec-websocket-version")) == (400, "13")
    assert client.answer(begin_websocket(client, "/echo", protocol="connect-udp")).status == 501
    bad = [("sec-websocket-protocol", "a b")]
    assert client.answer(begin_websocket(client, "/echo", headers=bad)).status == 400


def test_an_application_may_refuse_in_its_own_words(server: Server, client: Http2Client) -> None:
    refused = client.answer(begin_websocket(client, "/end?how=plain&when=before&note=refused"))
    assert refused.status == 403
    denied = begin_websocket(client, "/deny")
    client.wait(denied, lambda stream: stream.body == b"I am ")
    server.ring("pour")
    answer = client.answer(denied)
    assert (answer.status, answer.header("x-why"), answer.body) == (418, "tea", b"I am a teapot")
    # That would be an acceptance.
    assert client.answer(begin_websocket(client, "/deny?status=200")).status == 500


def test_an_application_that_answers_no_handshake_is_cancelled_and_costs_its_stream_alone() -> None:
    with (
        Server("websocket_app:app", "--ws-accept-timeout", "500ms") as server,
        Http2Client(server.port) as client,
    ):
        while not server.notes("sleep-began"):
            assert client.answer(begin_websocket(client, "/never?way=sleep")).status == 504
        assert server.note("sleep") == "CancelledError"
        assert client.ask("/scope").status == 200


def test_a_client_without_room_parks_its_application_and_costs_bounded_memory() -> None:
    options = ("--timeout-write", "1s", "--no-access-log")
    with Server("websocket_app:app", *options) as server, Http2Client(server.port) as client:
        before = server.memory_peak()
        client.makes_room = False
        socket = StreamWebSocket(client, "/flood?size=16384")
        assert socket.read_frame().opcode == BINARY
        client.wait(socket.stream, lambda stream: stream.reset is not None)
        assert server.note("sent") > 0
        assert server.memory_peak() - before < 8 * 1024**2
        # The connection's window is spent, and nothing else is.
        assert client.ask("/scope", method="HEAD").status == 200


def test_by_tls_its_scheme_is_wss() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        Server("websocket_app:app", "--ssl-self-signed") as server,
        Http2Client(server.port, context) as client,
    ):
        assert StreamWebSocket(client, "/echo").echo("secret") == "secret"
        StreamWebSocket(client, "/scope").read_frame()
        assert json.loads(client.ask("/notes/scope").body)["scheme"] == "wss"


def test_a_stop_closes_it_with_1012() -> None:
    with Server("websocket_app:app") as server, Http2Client(server.port) as client:
        socket = StreamWebSocket(client, "/wait")
        server.signal(SIGTERM)
        assert socket.read_close() == (1012, "the server stops")
        server.assert_ended_well()


def test_where_there_are_none_an_extended_connect_is_broken_off() -> None:
    with Server("websocket_app:app", "--ws", "none") as server, Http2Client(server.port) as client:
        assert not client.takes_connects()
        client.wait(begin_websocket(client, "/echo"), lambda stream: stream.reset == 1)
