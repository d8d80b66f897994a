"""Early hints through HAProxy, which speaks HTTP/1.1 to us: a client in front of it has them, by either HTTP.

Skipped where HAProxy cannot be had; `make test` unpacks Debian's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import UVICORN, Client, Server, request
from harness.http2 import Http2Client
from real_proxies import free_port, haproxy, program

LOCAL = "127.0.0.1"
LINKS = ["</a.css>; rel=preload; as=style", "</b.js>; rel=preload; as=script"]

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn has no early hints"),
    pytest.mark.skipif(program("haproxy") is None, reason="no HAProxy here: .ci/proxies unpacks one"),
]


@contextmanager
def proxied(folder: Path, words: str) -> Iterator[tuple[Server, int]]:
    """A server, and the port of the proxy in front of it, which speaks as `words` say."""
    with Server("wire_app:app", "--http1-early-hints") as server:
        port = free_port()
        configuration = (
            f"listen web\n  mode http\n  bind {LOCAL}:{port} {words}\n  server one {LOCAL}:{server.port}\n"
        )
        with haproxy(folder, configuration, port):
            yield server, port


def test_a_client_of_http1_has_each_hint_ahead_of_its_answer(tmp_path: Path) -> None:
    with proxied(tmp_path, "") as (server, port), Client((LOCAL, port)) as client:
        for name in ("one", "two"):
            client.send(request(f"/hinted?name={name}"))
            hint = client.read_response()
            assert (hint.status, [value for key, value in hint.headers if key == "link"]) == (103, LINKS)
            server.ring(name)
            assert client.read_response().body == b"hinted"


def test_a_client_of_http2_has_them_as_well(tmp_path: Path) -> None:
    with proxied(tmp_path, "proto h2") as (server, port), Http2Client(port) as client:
        server.ring("one")
        answer = client.ask("/hinted?name=one")
        assert [dict(each)[":status"] for each in answer.interim] == ["103"]
        assert [value for key, value in answer.interim[0] if key == "link"] == LINKS
        assert (answer.status, answer.body) == (200, b"hinted")
