"""Chromium, without a window: a page and all that it asks for, in the clear, by TLS and over HTTP/2."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import UVICORN, Server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.skipif(UVICORN, reason="it has no certificate for development"),
    # It takes a browser's time, which on a busy machine is minutes.
    pytest.mark.soak,
]
DEFLATE = "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12"
FLAGS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--ignore-certificate-errors", "--no-proxy-server", "--enable-logging=stderr", "--disable-extensions"),
]


@pytest.mark.parametrize(
    ("options", "protocol"),
    [((), "http/1.1"), (("--ssl-self-signed", "--no-http2"), "http/1.1"), (("--ssl-self-signed",), "h2")],
    ids=["in the clear", "by TLS", "over HTTP/2"],
)
def test_a_page_gets_all_that_it_asks_for(tmp_path: Path, options: tuple[str, ...], protocol: str) -> None:
    with Server("browser_app:app", *options) as server:
        place = f"{server.addresses[0].partition('://')[0]}://localhost:{server.port}/"
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path}", place]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as browser:
            try:
                told = server.wait_line("told {", stream="stdout", timeout=300)
                server.wait_line("left the socket 4000 bye", stream="stdout")
                server.wait_line("left the endless one", stream="stdout")
            finally:
                browser.terminate()
                said = browser.communicate()[1].decode(errors="replace")
    assert json.loads(told.partition(" ")[2]) == {
        "many": 50,
        "upload": 300_000,
        "gone": True,
        "events": ["0", "1", "2"],
        "echoes": ["chat", DEFLATE, 4, 70_000, 4000, True],
        "protocols": [protocol],
    }
    assert [line for line in said.splitlines() if "CONSOLE" in line] == []
