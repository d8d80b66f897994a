"""Process 1 of a container, as that of a namespace: orphans, signals, the terminal and the exit code."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness import UVICORN, Server
from harness.server import STARTUP_SECONDS

CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def _has_namespaces() -> bool:
    try:
        return subprocess.run([*CONTAINER, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn leaves orphans where they are"),
    pytest.mark.skipif(not _has_namespaces(), reason="no namespace of processes may be made here"),
]

APP = """
import os, signal, subprocess
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        os.write(2, b"app: shutdown\\n")
        await send({"type": "lifespan.shutdown.complete"})
        return
    if scope["path"] == "/orphan":
        subprocess.run(["sh", "-c", "sleep 0 & echo $! > orphan"], check=True)
    if scope["path"] == "/die":
        os.kill(os.getpid(), signal.SIGKILL)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def contained(folder: Path, *options: str, ready: bool = True) -> Server:
    (folder / "main.py").write_text(APP)
    return Server("main:app", *options, cwd=folder, below=CONTAINER, ready=ready)


def test_an_orphan_of_the_application_is_taken_off_the_list_and_signals_reach_the_server(
    tmp_path: Path,
) -> None:
    with contained(tmp_path) as server:
        [first] = children(server.pid)
        [serving] = children(first)
        assert server.ask("/").body == b"2"
        server.ask("/orphan")
        while children(first) != [serving]:
            assert server.process.poll() is None
        os.kill(first, signal.SIGHUP)
        server.wait_line("becomes its parent", timeout=STARTUP_SECONDS)
        for number in (signal.SIGUSR1, signal.SIGTTIN):
            os.kill(first, number)
        server.wait_line("2 workers are wanted", timeout=STARTUP_SECONDS)
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        server.wait_line("Finished server process [2]", timeout=STARTUP_SECONDS)
        os.kill(first, signal.SIGUSR2)
        server.wait_line("A new program is the parent now.", timeout=STARTUP_SECONDS)
        assert children(first) == [serving]
        os.kill(first, signal.SIGTERM)
        assert server.wait_exit() == 0
        assert "app: shutdown" in server.stderr


@pytest.mark.parametrize("told", ["killed", "fails"])
def test_the_container_ends_as_the_server_does(told: str, tmp_path: Path) -> None:
    if told == "fails":
        with contained(tmp_path, "--fd", "0", ready=False) as server:
            assert server.wait_exit() == 3
        return
    with contained(tmp_path) as server:
        server.connect().send(b"GET /die HTTP/1.1\r\nHost: test\r\n\r\n")
        assert server.wait_exit() == 128 + signal.SIGKILL


@pytest.mark.parametrize("options", [("--workers", "2"), ("--control-socket", "control")])
def test_a_parent_of_workers_is_process_1_itself(options: tuple[str, ...], tmp_path: Path) -> None:
    with contained(tmp_path, *options) as server:
        server.wait_line("workers are ready", timeout=STARTUP_SECONDS)
        [first] = children(server.pid)
        assert "Started parent process [1]" in server.stderr
        os.kill(first, signal.SIGTERM)
        assert server.wait_exit() == 0


def test_at_a_terminal_an_interrupt_comes_once_and_a_suspension_is_none(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(APP)
    command = [*CONTAINER, sys.executable, "-m", "bridgehead", "main:app", "--port", "0"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=tmp_path, preexec_fn=lambda: os.login_tty(theirs), close_fds=False
    )
    os.close(theirs)
    said = b""

    def wait_for(words: bytes) -> None:
        nonlocal said
        while words not in said:
            assert select.select([ours], [], [], STARTUP_SECONDS)[0], said
            said += os.read(ours, 4096)

    try:
        wait_for(b"running on")
        os.write(ours, b"\x1a")
        wait_for(b"^Z")
        os.write(ours, b"\x03")
        wait_for(b"Finished server process")
        assert process.wait(STARTUP_SECONDS) == 0
        assert said.count(b"app: shutdown") == 1
    finally:
        process.kill()
        process.wait()
        os.close(ours)
