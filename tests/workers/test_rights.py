"""`--pidfile`, `--user`, `--group`, `--umask`, and SIGUSR1: what service managers and log rotation need."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from harness import APPS, UVICORN, Server
from harness.server import STARTUP_SECONDS
from harness.workers import imported, wait_all, who

from bridgehead import pidfile
from bridgehead.channel import REOPEN, STOP, Channel
from bridgehead.config import Config
from bridgehead.errors import StartError
from bridgehead.parent import Parent

pytestmark = pytest.mark.skipif(UVICORN, reason="of options that are ours")

APP = """
import os
print("umask", oct(os.umask(0)), "runs as", os.getuid(), os.getgid(), sorted(os.getgroups()))
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_pidfile_names_who_is_to_be_signalled_from_start_to_end(workers: str, tmp_path: Path) -> None:
    file = tmp_path / "server.pid"
    with Server("workers_app:app", "--workers", workers, "--pidfile", str(file)) as server:
        assert int(file.read_text()) == server.pid
        with Server(
            "workers_app:app", "--port", str(server.port), "--pidfile", str(file), ready=False
        ) as other:
            assert other.wait_exit() == 3
        assert int(file.read_text()) == server.pid
        server.signal(signal.SIGHUP)
        line = "The reload is complete." if workers == "2" else "Another process serves from here on."
        server.wait_line(line, timeout=STARTUP_SECONDS)
        assert who(server) in imported(server)
        assert int(file.read_text()) == server.pid
        server.stop()
    assert not file.exists()


def test_a_pidfile_that_names_another_process_stays(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    pidfile.write(str(file))
    assert file.read_text() == f"{os.getpid()}\n"
    file.write_text("1\n")
    pidfile.remove(str(file))
    assert file.read_text() == "1\n"
    with pytest.raises(StartError, match="cannot be written"):
        pidfile.write(str(tmp_path / "nowhere" / "pid"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be somebody else")
def test_workers_run_as_the_user_and_with_the_umask_that_were_asked_for(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(APP)
    options = ("--user", "root", "--group", "12346", "--umask", "027", "--lifespan", "off")
    with Server("main:app", *options, cwd=tmp_path) as server:
        assert server.ask("/").status == 200
        groups = sorted(os.getgrouplist("root", 12346))
        server.wait_line(f"umask 0o27 runs as 0 12346 {groups}", stream="stdout")
        assert os.stat(f"/proc/{server.pid}").st_gid == os.getegid()
        server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be somebody else")
def test_a_user_who_may_not_run_python_is_said_and_given_up(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    (shut / "python").symlink_to(sys.executable)
    program = (
        f"import sys; sys.executable = {str(shut / 'python')!r}\nfrom bridgehead.cli import main; main()"
    )
    words = ["workers_app:app", "--port", "0", "--user", "12345"]
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=APPS,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "A worker could not be started: [Errno 13] Permission denied" in ended.stderr


def test_what_cannot_be_had_ends_the_start() -> None:
    with Server("workers_app:app", "--user", "nobody-has-this-name", ready=False) as server:
        assert server.wait_exit() == 3
        assert "there is no user 'nobody-has-this-name'" in server.stderr
    for wrong in ("8", "888", "1777", "rwx", True):
        with pytest.raises(StartError, match="is not a mask"):
            Config(umask=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_on_sigusr1_log_files_are_opened_again(workers: str, tmp_path: Path) -> None:
    log, config = tmp_path / "server.log", tmp_path / "log.json"
    handler = {"class": "logging.FileHandler", "filename": str(log)}
    level = {"level": "INFO", "handlers": ["file"], "propagate": False}
    settings = {"version": 1, "disable_existing_loggers": False, "handlers": {"file": handler}}
    config.write_text(json.dumps(settings | {"loggers": {"bridgehead": level, "bridgehead.access": level}}))
    options = ("--workers", workers, "--log-config", str(config), "--pidfile", str(tmp_path / "pid"))
    with Server("workers_app:app", *options, "--port", "0", ready=False) as server:
        wanted = "All 2 workers are ready" if workers == "2" else " running on "
        deadline = time.monotonic() + STARTUP_SECONDS
        while not log.exists() or wanted not in log.read_text():
            assert time.monotonic() < deadline
            assert server.process.poll() is None
        log.rename(tmp_path / "server.log.1")
        server.signal(signal.SIGUSR1)
        while not log.exists():
            assert server.process.poll() is None
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
    assert "Finished server process" in log.read_text()
    assert "Finished server process" not in (tmp_path / "server.log.1").read_text()


def test_a_worker_obeys_what_it_was_told_just_before_it_is_to_stop(tmp_path: Path) -> None:
    log, stopped = tmp_path / "server.log", threading.Event()
    handler = logging.FileHandler(log)
    ours, theirs = socket.socketpair()
    with ours, contextlib.closing(asyncio.new_event_loop()) as loop, contextlib.closing(handler):
        log.rename(tmp_path / "server.log.1")
        parent = Parent(Channel(theirs))
        parent.calls(stopped.set, loop)
        parent.listen([REOPEN, STOP])
        assert stopped.wait(10)
        assert log.exists()
    theirs.close()


def test_a_list_of_processes_says_who_is_who() -> None:
    with Server("workers_app:app", "--workers", "2") as server:
        wait_all(server)
        words = [Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1] for pid in imported(server)]
        assert {" ".join(each[-4:]) for each in words} == {
            "worker 1 of workers_app:app",
            "worker 2 of workers_app:app",
        }
        server.stop()
