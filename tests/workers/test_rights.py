"""`--pidfile`, `--user`, `--group`, `--umask`, and SIGUSR1: what service managers and log rotation need."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
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
from harness import UVICORN, Server
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


def test_the_pidfile_of_a_server_that_lives_stays_whoever_else_is_started(tmp_path: Path) -> None:
    file = tmp_path / "server.pid"

    def refuses_another(server: Server) -> None:
        for options in (("--workers", "1"), ("--workers", "2"), ("--reload",)):
            with Server("workers_app:app", "--pidfile", str(file), *options, ready=False) as other:
                assert other.wait_exit() == 3
                assert (
                    f"--pidfile {str(file)!r} is that of a server that runs: process {server.pid}\n"
                    in other.stderr
                )
                assert f"hint: stop that first (kill {server.pid}), or choose another file" in other.stderr
                assert "imported" not in other.stderr
            assert int(file.read_text()) == server.pid

    with Server("workers_app:app", "--pidfile", str(file)) as server:
        refuses_another(server)
        server.signal(signal.SIGHUP)
        server.wait_line("Another process serves from here on.", timeout=STARTUP_SECONDS)
        # The same process, as another program.
        while b"supervisor.resumed" not in Path(f"/proc/{server.pid}/cmdline").read_bytes():
            assert server.process.poll() is None
        assert who(server) in imported(server)
        while _is_free(file):
            assert server.process.poll() is None
        refuses_another(server)
        server.signal(signal.SIGUSR2)
        server.wait_line("The reload is complete.", timeout=STARTUP_SECONDS)
        refuses_another(server)
        server.stop()
    assert not file.exists()


@pytest.mark.parametrize("options", [("--workers", "1"), ("--workers", "2"), ("--reload",)])
def test_a_pidfile_that_is_left_over_is_nobodys(options: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "server.pid"
    file.write_text(f"{os.getpid()}\n")  # a number that is somebody else's by now
    for _ in range(2):
        with Server("workers_app:app", *options, "--pidfile", str(file)) as server:
            assert int(file.read_text()) == server.pid
            server.signal(signal.SIGKILL)
            server.wait_exit()
        assert file.exists()
    with Server("workers_app:app", *options, "--pidfile", str(file)) as server:
        assert int(file.read_text()) == server.pid
        server.stop()
    assert [*tmp_path.iterdir()] == []


def test_what_a_server_forks_does_not_hold_its_pidfile(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    ours = pidfile.write(str(file))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    try:
        assert not _is_free(file)
        pidfile.remove(ours)
        pidfile.remove(ours)
        again = pidfile.write(str(file))
        os.close(again.descriptor if again else -1)
        assert _is_free(file)
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)


def test_a_pidfile_that_names_another_process_stays(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    ours = pidfile.write(str(file))
    assert file.read_text() == f"{os.getpid()}\n"
    file.write_text("1\n")
    pidfile.remove(ours)
    assert file.read_text() == "1\n"
    with pytest.raises(StartError, match="cannot be written"):
        pidfile.write(str(tmp_path / "nowhere" / "pid"))


def test_a_pidfile_that_cannot_be_locked_is_written_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", refuse)
    monkeypatch.setattr(logging.getLogger("bridgehead"), "propagate", True)
    file = tmp_path / "pid"
    file.write_text("1\n")
    ours = pidfile.write(str(file))
    assert file.read_text() == f"{os.getpid()}\n"
    assert "cannot be locked there: a second server would replace it" in caplog.text
    pidfile.remove(ours)
    assert not file.exists()


def _is_free(file: Path) -> bool:
    """As another process sees it."""
    code = f"from bridgehead import pidfile; pidfile.refuse_another({str(file)!r})"
    return (
        subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0
    )


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
def test_a_new_version_of_the_program_starts_its_workers_with_the_same_rights(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(APP)
    options = ("--user", "root", "--group", "12346", "--umask", "027", "--lifespan", "off")
    with Server("main:app", *options, cwd=tmp_path) as server:
        line = f"umask 0o27 runs as 0 12346 {sorted(os.getgrouplist('root', 12346))}"
        server.wait_line(line, stream="stdout")
        server.signal(signal.SIGUSR2)
        server.wait_line("The reload is complete.", timeout=STARTUP_SECONDS)
        server.wait_line(line, count=2, stream="stdout")
        server.stop()


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
