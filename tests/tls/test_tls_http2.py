"""HTTP/2 that was agreed on in a handshake."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator

import pytest
from harness import UVICORN, Server
from harness.http2 import Http2Client
from secured import OURS, trusting

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has HTTP/2 with another parser only")


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


def test_it_is_not_offered_when_it_is_off() -> None:
    context = trusting()
    context.set_alpn_protocols(["h2"])
    with Server("asgi_app:app", "--no-http2", *OURS) as server:
        socket = server.connect().socket
        with pytest.raises(ssl.SSLError, match=r"(?i)no.application.protocol"):
            context.wrap_socket(socket, server_hostname="localhost")
