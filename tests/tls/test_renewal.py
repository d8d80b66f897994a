"""Certificates that are replaced while clients are served: row 78."""

from __future__ import annotations

import shutil
from pathlib import Path
from signal import SIGHUP

from harness import Server
from harness.server import STARTUP_SECONDS
from secured import FILES, der, reach, trusting


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
