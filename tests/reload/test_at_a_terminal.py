"""`serve --reload` at a terminal: Ctrl+C, the debugger, colours."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import UVICORN, Client, request
from harness.server import STARTUP_SECONDS, STOP_SECONDS

pytestmark = pytest.mark.skipif(UVICORN, reason="of lines and exit codes that are ours")

APP = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    word = "plain"
    if scope["path"] == "/debug":
        breakpoint()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": word.encode()})
"""


class Terminal:
    """A developer's terminal, with the server in its foreground."""

    def __init__(self, folder: Path) -> None:
        self._keyboard, screen = pty.openpty()
        self._seen = b""
        command = [sys.executable, "-m", "bridgehead", "main:app", "--reload", "--port", "0"]
        self.process = subprocess.Popen(
            command, cwd=folder, pass_fds=[screen], preexec_fn=lambda: os.login_tty(screen)
        )
        os.close(screen)

    def press(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def wait_for(self, pattern: bytes) -> re.Match[bytes]:
        deadline = time.monotonic() + STARTUP_SECONDS
        while (found := re.search(pattern, self._seen)) is None:
            left = deadline - time.monotonic()
            assert left > 0, self._seen
            assert select.select([self._keyboard], [], [], left)[0], self._seen
            self._seen += os.read(self._keyboard, 65536)
        return found

    def end(self) -> tuple[int, bytes]:
        """The exit code, and all that was to be seen."""
        try:
            while more := os.read(self._keyboard, 65536):
                self._seen += more
        except OSError:  # nobody has the terminal any more
            pass
        return self.process.wait(STOP_SECONDS), self._seen

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._keyboard)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "main.py").write_text(APP)
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def serving_port(terminal: Terminal) -> int:
    return int(terminal.wait_for(rb"running on \S*http://127.0.0.1:(\d+)")[1])


def test_ctrl_c_ends_all_once_and_quietly(terminal: Terminal) -> None:
    serving_port(terminal)
    terminal.press(b"\x03")
    code, seen = terminal.end()
    assert code == 0, seen
    assert seen.count(b"Finished server process") == 1
    assert b"Traceback" not in seen


def test_what_changed_is_shown_in_colour(terminal: Terminal, tmp_path: Path) -> None:
    serving_port(terminal)
    (tmp_path / "other.py").write_text("")
    terminal.wait_for(rb"\x1b\[33mWARNING\x1b\[0m:  Bridgehead detected changes in 'other.py'. Reloading...")
    terminal.press(b"\x03")
    assert terminal.end()[0] == 0


def test_the_debugger_has_the_keyboard(terminal: Terminal) -> None:
    port = serving_port(terminal)
    bodies = []

    def ask() -> None:
        with Client(("127.0.0.1", port), timeout=STARTUP_SECONDS) as client:
            client.send(request("/debug"))
            bodies.append(client.read_response().body)

    asking = threading.Thread(target=ask)
    asking.start()
    terminal.wait_for(rb"\(Pdb\) ")
    terminal.press(b"word = 'changed'\n")
    terminal.press(b"continue\n")
    asking.join()
    assert bodies == [b"changed"]
    terminal.press(b"\x03")
    assert terminal.end()[0] == 0
