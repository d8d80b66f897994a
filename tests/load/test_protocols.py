"""Load by HTTP/2 and by WebSockets, in the clear and by TLS, on a real server."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from harness import APPS

from bridgehead.errors import StartError
from bridgehead.load import Report, Scenario, load
from bridgehead.load.command import main
from bridgehead.load.compare import as_text as compared
from bridgehead.load.text import as_text
from bridgehead.testing import Served, running

FILES = Path(__file__).resolve().parent.parent / "tls" / "files"
TLS: dict[str, Any] = {"ssl_certfile": str(FILES / "server.pem"), "ssl_keyfile": str(FILES / "server.key")}


@pytest.fixture(scope="module")
def clear() -> Iterator[Served]:
    with running("wire_app:app", cwd=APPS) as server:
        yield server


@pytest.fixture(scope="module")
def secured() -> Iterator[Served]:
    with running("tls_app:app", cwd=APPS, **TLS) as server:
        yield server


@pytest.fixture(scope="module")
def sockets() -> Iterator[Served]:
    with running("websocket_app:app", cwd=APPS) as server:
        yield server


def by(scheme: str, server: Served, path: str) -> str:
    return f"{scheme}://localhost:{server.port}{path}"


def test_http2_is_spoken_by_prior_knowledge(clear: Served) -> None:
    options: dict[str, Any] = {"http": "2", "connections": 2, "streams": 8, "requests": 200}
    report = load(by("http", clear, "/scope"), expect_body='"http_version": "2"', **options)
    assert (report.requests, report.errors) == (200, 0), report.first_errors
    assert report.connect.count == 2
    assert (report.settings["protocol"], report.settings["streams"]) == ("2", 8)
    assert "2 connections of HTTP/2 with 8 streams, each request follows" in as_text(report)


def test_http2_is_agreed_on_by_tls(secured: Served) -> None:
    options: dict[str, Any] = {"http": 2, "connections": 2, "streams": 4, "requests": 50}
    report = load(by("https", secured, "/tls"), expect_body='"scheme": "https"', **options)
    assert (report.requests, report.errors) == (50, 0), report.first_errors


def test_bodies_go_by_http2_both_ways(clear: Served) -> None:
    scenarios = [Scenario(path="/echo", method="POST", body=b"x" * 300_000)]
    report = load(clear.url, scenarios=scenarios, http="2", streams=4, connections=1, requests=12)
    assert (report.errors, report.bytes) == (0, 12 * 300_000), report.first_errors


def test_who_does_not_agree_to_http2_is_an_error() -> None:
    with running("tls_app:app", cwd=APPS, http2=False, **TLS) as server:
        report = load(by("https", server, "/tls"), http="2", connections=1, requests=2)
    assert report.errors_by_kind == {"connect": 2}
    assert "NoApplicationProtocol" in report.first_errors["connect"]


def test_who_does_not_know_of_alpn_is_an_error() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS["ssl_certfile"], TLS["ssl_keyfile"])
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            # One that looks whether anybody is there, and one for the request.
            for _ in range(2):
                with suppress(OSError), context.wrap_socket(listener.accept()[0], server_side=True) as taken:
                    taken.recv(1)

        serving = threading.Thread(target=serve)
        serving.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        report = load(url, http="2", connections=1, requests=1)
        serving.join()
    assert report.first_errors == {"connect": "the server did not agree to HTTP/2"}


def test_messages_come_back(sockets: Served) -> None:
    report = load(by("ws", sockets, "/echo"), connections=4, requests=100, body='{"n": {n}}')
    assert (report.requests, report.errors, report.statuses) == (100, 0, {}), report.first_errors
    assert 0 < report.p50 <= report.p99
    text = as_text(report)
    assert "4 connections of WebSockets, each message follows the last answer" in text
    assert "  statuses  none\n" in text


def test_messages_are_sent_at_a_rate_too(sockets: Served) -> None:
    report = load(by("ws", sockets, "/echo"), connections=4, rate=500, requests=50)
    assert (report.requests, report.errors, report.unsent) == (50, 0, 0), report.first_errors


def test_kinds_of_messages_are_told_apart(sockets: Served) -> None:
    kinds = [
        Scenario(name="text", path="/echo", body="{uuid}", weight=2),
        Scenario(name="bytes", path="/echo", body=b"\x00" * 20_000),
        Scenario(name="other", path="/echo", body="no", expect_body=b"yes"),
    ]
    report = load(by("ws", sockets, "/"), scenarios=kinds, connections=2, requests=60)
    text, binary, other = report.scenarios
    assert text.errors == binary.errors == 0 < min(text.requests, binary.requests)
    assert other.errors_by_kind == {"assertion": other.requests}


def test_messages_go_by_tls() -> None:
    with running("websocket_app:app", cwd=APPS, **TLS) as server:
        report = load(by("wss", server, "/echo"), connections=2, requests=20, body="x" * 20_000)
    assert (report.requests, report.errors) == (20, 0), report.first_errors


def test_a_file_is_one_binary_message(
    sockets: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "message").write_bytes(bytes(range(256)))
    words = ["--body-file", str(tmp_path / "message"), "--requests", "5", "--connections", "1", "--json", "-"]
    assert main([by("ws", sockets, "/echo"), *words]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["requests"], report["errors"], report["bytes"]) == (5, 0, 5 * 256)


def test_a_handshake_that_is_denied_is_a_failure_to_connect(sockets: Served) -> None:
    report = load(by("ws", sockets, "/end?when=before&how=plain"), connections=1, requests=2)
    assert report.errors_by_kind == {"connect": 2}
    assert report.first_errors["connect"] == "the handshake was answered with status 403"


def test_runs_by_other_protocols_are_not_alike(clear: Served) -> None:
    one, other = (
        load(by("http", clear, "/scope"), http=version, connections=2, duration=0.1)
        for version in ("1.1", "2")
    )

    def lengthened(report: Report) -> Report:
        row = {**report.to_json()["timeline"][0], "seconds": 1.0}
        return Report.from_json({**report.to_json(), "timeline": [row] * 6})

    told = compared(lengthened(one), lengthened(other), names=("a", "b"))
    assert "not made alike" in told


@pytest.mark.parametrize(
    ("url", "options", "told"),
    [
        ("ws://a/", {"http": "2"}, "messages go by HTTP/1.1"),
        ("ws://a/", {"expect_status": [200]}, "a message has no status"),
        ("ws://127.0.0.1:1/", {"method": "POST"}, "a WebSocket is asked for by GET"),
        ("http://a/", {"http": "3"}, "'3' is not a version of HTTP that is spoken here"),
        ("http://a/", {"streams": 2}, "2 streams, and HTTP/1.1 has none"),
        ("http://a/", {"http": "2", "streams": 2, "keep_alive": False}, "streams share a connection"),
    ],
)
def test_what_cannot_be_spoken_is_refused(url: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(StartError, match=told):
        load(url, **options)
