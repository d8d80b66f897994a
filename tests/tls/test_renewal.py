"""Certificates that are replaced while clients are served: row 78."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path
from signal import SIGHUP
from typing import Any

import pytest
from harness import Client, Server
from harness.server import STARTUP_SECONDS
from secured import FILES, OURS, der, facts, file, reach, trusting


class Place:
    """Where a server looks for its certificate."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "shown.pem", folder / "shown.key"
        self.put("server")

    def put(self, name: str) -> None:
        shutil.copyfile(FILES / f"{name}.key", self.key)
        shutil.copyfile(FILES / f"{name}.pem", self.certificate)

    @property
    def options(self) -> tuple[str, ...]:
        return "--ssl-certfile", str(self.certificate), "--ssl-keyfile", str(self.key)


def shown(server: Server) -> bytes:
    with reach(server, trusting(check_hostname=False)) as client:
        client.assert_open()
        return client.certificate()


def test_a_hangup_has_the_files_read_again_and_cuts_nobody_off(loop: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    with (
        Server("tls_app:app", "--loop", loop, *place.options, allow=["Traceback"]) as server,
        reach(server) as early,
        reach(server) as bell,
    ):
        early.send(b"GET /paced?name=go HTTP/1.1\r\nHost: test\r\n\r\n")
        early.read_head()
        assert early.read_chunk() == b"first"
        place.put("other")
        bell.assert_open()
        server.signal(SIGHUP)
        server.wait_line("Another process serves from here on.", timeout=STARTUP_SECONDS)
        assert shown(server) == der("other.pem")
        server.wait_line("each answer closes its connection", timeout=STARTUP_SECONDS)
        assert bell.ask("/ring/go").header("connection") == "close"
        assert early.read_chunk() == b"second"
        place.certificate.write_text("broken")
        server.signal(SIGHUP)
        server.wait_line("The reload has failed: the new worker did not start.", timeout=STARTUP_SECONDS)
        assert "shown.pem" in server.stderr
        assert shown(server) == der("other.pem")


def test_files_that_change_are_read_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with Server("tls_app:app", *place.options) as server:
        place.put("other")
        server.wait_line("Read the certificates again", timeout=30)
        assert shown(server) == der("other.pem")
        # A key that does not fit.
        shutil.copyfile(FILES / "server.key", place.key)
        server.wait_line("does not belong to the certificate", timeout=30)
        assert shown(server) == der("other.pem")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_resumed_and_nobody_who_was_called_back_comes_back_with_one(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    called_back = tmp_path / "list.crl"
    shutil.copyfile(FILES / "stranger.crl", called_back)
    asks = ("--ssl-cert-reqs", "1", "--ssl-ca-certs", file("authority.pem"), "--ssl-crl", str(called_back))
    with Server("tls_app:app", *OURS, *asks) as server:
        context = trusting(client="revoked", minimum_version=version, maximum_version=version)
        first, session = visit(server, context)
        assert first["client_cert_name"] == "CN=bob"
        again, resumed = visit(server, context, session)
        assert again == first
        shutil.copyfile(FILES / "revoked.crl", called_back)
        server.wait_line("Read the certificates again", timeout=30)
        for each in (None, session, resumed):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                visit(server, context, each)


def visit(server: Server, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> tuple[Any, Any]:
    """What the application is told, and what the client may come back with."""
    with Client(("127.0.0.1", server.port)) as client:
        secured = context.wrap_socket(client.socket, server_hostname="localhost", session=session)
        client.socket = secured
        told = client.ask("/tls").json()["tls"]
        assert secured.session_reused is (session is not None)
        return told, secured.session


def test_authorities_that_change_are_read_again(tmp_path: Path) -> None:
    authorities = tmp_path / "authorities.pem"
    shutil.copyfile(FILES / "stranger.pem", authorities)
    asks = ("--ssl-cert-reqs", "1", "--ssl-ca-certs", str(authorities))
    with Server("tls_app:app", *OURS, *asks) as server:
        known = trusting(client="client-chain")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            facts(server, known)
        shutil.copyfile(FILES / "authority.pem", authorities)
        server.wait_line("Read the certificates again", timeout=30)
        assert facts(server, known)["client_cert_name"].startswith("CN=alice")
