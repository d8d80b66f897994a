"""HTTP/2 that was agreed on in a handshake."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator

import pytest
from harness import UVICORN, Server
from harness.http2 import Http2Client
from secured import OURS, Secured, trusting

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has HTTP/2 with another parser only")

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop, *OURS) as server:
        yield server


def test_a_request_is_answered_and_its_scope_says_https(server: Server) -> None:
    with Http2Client(server.port, trusting()) as client:
        scope = json.loads(client.ask("/scope").body)
        assert (scope["http_version"], scope["scheme"]) == ("2", "https")
        assert scope["extensions"]["tls"]["tls_version"] == 0x0304


def test_large_bodies_pass_both_ways_beside_each_other(server: Server) -> None:
    body = bytes(range(256)) * 1025
    with Http2Client(server.port, trusting()) as client:
        first, second = (client.begin("/received", method="POST", ends=False) for _ in range(2))
        client.send(first, body)
        client.send(second, body)
        for stream in (first, second):
            messages = json.loads(client.answer(stream).body)
            assert [message["more_body"] for message in messages][-1] is False


@pytest.mark.parametrize("protocols", [[], ["http/1.1"]], ids=["none", "http/1.1"])
def test_it_is_spoken_with_nobody_who_has_not_agreed_on_it(server: Server, protocols: list[str]) -> None:
    with Secured(server.port, agreeing(*protocols)) as client:
        client.send(PREFACE)
        assert client.read_response().status == 505
        client.assert_closed()
    with Secured(server.port, agreeing(*protocols)) as client:
        assert client.ask("/scope").json()["http_version"] == "1.1"


@pytest.mark.parametrize(
    "said",
    [
        b"GET /scope HTTP/1.1\r\nHost: test\r\n\r\n",
        b"PRI * HTTP/1.1\r\nHost: test\r\n\r\n",
        b"\r\n" + PREFACE,
        PREFACE.replace(b"SM", b"MS"),
    ],
)
def test_who_has_agreed_on_it_is_spoken_to_in_nothing_else(server: Server, said: bytes) -> None:
    for cut in (0, 3):
        with Secured(server.port, agreeing("h2", "http/1.1")) as client:
            assert client.socket.selected_alpn_protocol() == "h2"
            for part in (said[:cut], said[cut:]):
                client.send(part)
            answer = client.read_to_any_end()
            # Its settings at most, and the end.
            assert b"HTTP/" not in answer
            assert answer[3:4] in (b"", b"\x04"), answer


def test_half_a_preface_is_answered_in_nothing_else() -> None:
    with (
        Server("asgi_app:app", *OURS, "--timeout-header", "300ms", "--log-level", "debug") as server,
        Secured(server.port, agreeing("h2")) as client,
    ):
        client.send(PREFACE[:5])
        assert client.read_to_end() == b""
        server.wait_line("Request Timeout")


def agreeing(*protocols: str) -> ssl.SSLContext:
    context = trusting()
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def test_it_is_not_offered_when_it_is_off() -> None:
    context = trusting()
    context.set_alpn_protocols(["h2"])
    with Server("asgi_app:app", "--no-http2", *OURS) as server:
        socket = server.connect().socket
        with pytest.raises(ssl.SSLError, match=r"(?i)no.application.protocol"):
            context.wrap_socket(socket, server_hostname="localhost")
