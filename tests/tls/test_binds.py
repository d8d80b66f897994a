"""TLS and the clear side by side, and a certificate for development."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest
from harness import Client, Server
from secured import OURS, Secured, file, hello, reach, trusting

BOTH = ("--bind", "127.0.0.1:0", "--insecure-bind", "127.0.0.1:0")


def test_clients_come_by_tls_and_in_the_clear() -> None:
    with Server("tls_app:app", *OURS, *BOTH, ready=False) as server:
        secure, clear = server.wait_line("https://127"), server.wait_line("http://127")
        server.addresses = [line.split(" running on ")[1].split()[0] for line in (secure, clear)]
        with reach(server) as client:
            assert client.ask("/tls").json()["scheme"] == "https"
        with Client(("127.0.0.1", server.ports[1])) as plain:
            assert plain.ask("/tls").json() == {"scheme": "http", "tls": None}


def test_who_comes_in_the_clear_is_sent_to_the_same_place_by_tls() -> None:
    options = (*OURS, *BOTH, "--redirect-https", "--log-level", "debug")
    with Server("tls_app:app", *options, ready=False) as server:
        lines = server.wait_line("https://127"), server.wait_line("http://127")
        server.addresses = [line.split(" running on ")[1].split()[0] for line in lines]
        secure, clear = server.ports
        with Client(("127.0.0.1", clear)) as client:
            for method in ("GET", "POST"):
                answer = client.ask("/tls?a=b", method=method, body=b"body" if method == "POST" else b"")
                assert (answer.status, answer.header("location")) == (308, f"https://test:{secure}/tls?a=b")
                reason = "Permanent Redirect: it came in the clear, and was sent to where TLS is spoken"
                server.wait_line(f"DEBUG:    Refused a request of 127.0.0.1:{client.port}: {reason}")
        with Client(("127.0.0.1", clear)) as client:
            # What is asked of the whole server has no path.
            client.send(b"OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n")
            assert client.read_response().header("location") == f"https://test:{secure}/"
        place = f"http://localhost:{clear}/tls"
        answered = httpx.get(place, verify=trusting(), follow_redirects=True, trust_env=False)
        assert answered.json()["scheme"] == "https"


def test_a_handshake_in_the_clear_is_refused() -> None:
    with Server("tls_app:app") as server:
        with Client(("127.0.0.1", server.port)) as client:
            client.send(hello())
            assert client.read_response().status == 400
            client.assert_closed()
        assert server.ask("/hello").status == 200


def test_a_reload_keeps_the_certificate_that_was_made(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with Server("app:app", "--reload", "--ssl-self-signed", cwd=tmp_path) as server:
        first = fetched(server)
        (tmp_path / "app.py").write_text(APP + "# changed\n")
        server.wait_line("Application startup complete", count=2, timeout=30)
        assert fetched(server) == first


APP = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})
"""


def fetched(server: Server) -> bytes:
    """The certificate that a client is shown, and an answer that comes by it."""
    blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
    with Secured(server.port, blind) as client:
        assert client.ask("/").status == 200
        return client.certificate()


def test_a_certificate_is_made_for_development() -> None:
    with Server("tls_app:app", "--ssl-self-signed") as server:
        assert server.addresses[0].startswith("https://")
        blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
        with Secured(server.port, blind) as client:
            made = ssl.DER_cert_to_PEM_cert(client.certificate())
        # Whoever believes it is let in by each of its names.
        for name in ("localhost", "127.0.0.1", "::1"):
            with Secured(server.port, ssl.create_default_context(cadata=made), name=name) as client:
                client.assert_open()


def test_tls_goes_through_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    with Server("tls_app:app", *OURS, "--uds", str(path)):
        plain = Client(str(path))
        with trusting().wrap_socket(plain.socket, server_hostname="localhost") as secured:
            secured.sendall(b"GET /tls HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            answer = b""
            while more := secured.recv(65536):
                answer += more
    assert b'"scheme": "https"' in answer


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_is_answered() -> None:
    with Server("tls_app:app", *OURS) as server:
        place = f"https://localhost:{server.port}/tls"
        command = ["curl", "--silent", "--fail", "--noproxy", "*", "--cacert", file("authority.pem"), place]
        answered = subprocess.run([*command, place], check=True, capture_output=True, text=True, timeout=30)
    assert answered.stdout.count('"scheme": "https"') == 2
