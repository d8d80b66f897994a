"""Signals that come while the application is imported, when nobody serves yet."""

from __future__ import annotations

import sys
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, SIGTTIN, SIGTTOU, SIGUSR1

import pytest
from harness import UVICORN, Server
from harness.server import STARTUP_SECONDS
from harness.workers import wait_gone

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn dies of the signal, or is stopped by it")

APP = """
import ctypes, os, signal, sys, time
from pathlib import Path
os.write(2, b"app: imports\\n")
{waits}
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"served"}})
"""
# The second is in C, and keeps Python's lock: no handler of Python's would ever run.
PAUSES = ["signal.pause()", "ctypes.PyDLL(None).pause()"]

LOG = """
[loggers]
keys = root
[handlers]
keys = file, stderr
[formatters]
keys =
[logger_root]
level = INFO
handlers = file, stderr
[handler_file]
class = FileHandler
args = ("log",)
[handler_stderr]
class = StreamHandler
args = (sys.stderr,)
"""


def save(folder: Path, waits: str) -> None:
    (folder / "main.py").write_text(APP.format(waits=waits))


@pytest.mark.parametrize("level", ["info", "warning"])
@pytest.mark.parametrize("waits", PAUSES)
def test_a_sigterm_ends_the_import_with_a_line_and_0(waits: str, level: str, tmp_path: Path) -> None:
    save(tmp_path, waits)
    with Server("main:app", "--log-level", level, cwd=tmp_path, ready=False) as server:
        server.wait_line("app: imports", timeout=STARTUP_SECONDS)
        server.signal(SIGTERM)
        assert server.wait_exit() == 0
        line = f"INFO:     Told to end while the application was imported. Ending process [{server.pid}].\n"
        assert server.stderr == "app: imports\n" + (line if level == "info" else "")


def test_an_interrupt_ends_the_import_as_any_program(tmp_path: Path) -> None:
    save(tmp_path, PAUSES[0])
    with Server("main:app", cwd=tmp_path, ready=False) as server:
        server.wait_line("app: imports", timeout=STARTUP_SECONDS)
        server.signal(SIGINT)
        assert server.wait_exit() == 130
        assert server.stderr == "app: imports\n"


def test_a_handler_that_is_set_before_has_the_signal(tmp_path: Path) -> None:
    said = "signal.signal(signal.SIGTERM, lambda *_: os.write(2, b'app: hears\\n'))"
    save(tmp_path, f"{said}\nsignal.raise_signal(signal.SIGTERM)")
    with Server("main:app", "--lifespan", "off", cwd=tmp_path) as server:
        assert server.ask("/").body == b"served"
        server.stop()
        assert server.stderr.count("app: hears\n") == 2


STARTS = """
import asyncio, os
from pathlib import Path
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        os.write(2, b"app: starts\\n")
        while not Path("release").exists():
            await asyncio.sleep(0.01)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
"""
IMPORTS = APP.format(waits="while not Path('release').exists():\n    time.sleep(0.01)")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells who sent it")
@pytest.mark.parametrize(("text", "line"), [(IMPORTS, "app: imports"), (STARTS, "app: starts")])
def test_what_is_asked_for_before_it_serves_is_done_once_it_serves(
    text: str, line: str, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text(text)
    (tmp_path / "log.ini").write_text(LOG)
    with Server("main:app", "--log-config", "log.ini", cwd=tmp_path, ready=False) as server:
        server.wait_line(line, timeout=STARTUP_SECONDS)
        (tmp_path / "log").rename(tmp_path / "log.1")
        for number in (SIGUSR1, SIGHUP):
            server.signal(number)
        (tmp_path / "release").touch()
        server.wait_line("becomes its parent", timeout=STARTUP_SECONDS)
        assert (tmp_path / "log").exists(), "the file was not opened again"
        server.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells who sent it")
def test_who_is_told_to_scale_while_it_imports_serves_later(tmp_path: Path) -> None:
    save(tmp_path, "while not Path('release').exists():\n    time.sleep(0.01)")
    with Server("main:app", cwd=tmp_path, ready=False) as server:
        server.wait_line("app: imports", timeout=STARTUP_SECONDS)
        for number in (SIGTTIN, SIGTTOU):
            server.signal(number)
        (tmp_path / "release").touch()
        server.wait_ready()
        assert server.ask("/").body == b"served"
        # Afterwards they are what they always were.
        server.signal(SIGTTOU)
        server.wait_line("One process serves, and stays")
        server.stop()


def test_what_the_import_forks_or_starts_is_ended_as_anywhere(tmp_path: Path) -> None:
    forks = (
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.pause()\n"
        "program = [sys.executable, '-c', 'import signal; signal.pause()']\n"
        "for each in (child, os.posix_spawn(sys.executable, program, os.environ)):\n"
        "    os.kill(each, signal.SIGTERM)\n"
        "    assert os.waitpid(each, 0)[1] == signal.SIGTERM"
    )
    save(tmp_path, forks)
    with Server("main:app", cwd=tmp_path) as server:
        assert server.ask("/").body == b"served"
        assert "Told to end" not in server.stderr
        server.stop()


def test_workers_that_import_end_with_their_parent(tmp_path: Path) -> None:
    save(tmp_path, f"os.write(2, f'app: pid {{os.getpid()}}\\n'.encode())\n{PAUSES[0]}")
    with Server("main:app", "--workers", "2", cwd=tmp_path, ready=False) as server:
        server.wait_line("app: pid", count=2, timeout=STARTUP_SECONDS)
        server.signal(SIGTERM)
        assert server.wait_exit() == 0
        pids = [int(line.split()[-1]) for line in server.stderr.splitlines() if "app: pid" in line]
        wait_gone(pids)
        assert "was killed by" not in server.stderr
