"""The page for operators, as a browser shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import UVICORN, Server
from operators import PATIENCE, Operators

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")
FLAGS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--no-proxy-server", "--enable-logging=stderr", "--disable-extensions", "--virtual-time-budget=5000"),
]


def test_the_page_loads_nothing_but_the_status() -> None:
    with Server("framing_app:app", "--admin", "127.0.0.1:0") as server:
        status, page = Operators(server).ask("/")
    assert status == 200
    assert re.findall(r"(?:src|href|url)\s*[=(]", page) == []
    assert re.findall(r"https?://[^\"]*", page) == ["http://www.w3.org/2000/svg"] * 2, (
        "the name of a language"
    )
    assert '<html lang="en">' in page
    assert "prefers-color-scheme: dark" in page


# It takes a browser's time, which on a busy machine is minutes.
@pytest.mark.soak
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_workers_requests_refusals_and_plots(tmp_path: Path) -> None:
    with Server("framing_app:app", "--admin", "127.0.0.1:0") as server:
        operators = Operators(server)
        with server.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: b@d\r\n\r\n")
            client.read_response()
        for _ in range(7):
            server.ask("/")
        operators.until(lambda: len(operators.status()["history"]["at"]) > 1)
        place = f"http://127.0.0.1:{operators.port}/"
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path}", "--dump-dom", place]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10 * PATIENCE)
    assert [line for line in shown.stderr.splitlines() if "CONSOLE" in line] == []
    text = re.sub(r"<[^>]*>", "|", shown.stdout)
    assert re.search(r'<p id="state"[^>]*class="good">ready</p>', shown.stdout)
    assert re.search(rf"\|{server.pid}\|+serving\|", text)
    assert re.search(r"\|GET\|+200\|+HTTP/1\.1\|+7\|", text)
    assert re.search(r"\|bad_host\|+1\|", text)
    assert shown.stdout.count("<polyline") >= 6
    # A screen reader is told what a plot shows, and a keyboard reaches every part.
    assert len(re.findall(r'role="img" aria-label="[^"]+: [^"]+"', shown.stdout)) == 6
    assert len(re.findall(r'<section tabindex="0" aria-label="[^"]+"', shown.stdout)) == 9
