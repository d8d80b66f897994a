"""One worker: one process, which on SIGHUP gives its sockets to a successor and stays as its parent."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness import APPS, UVICORN, Server
from harness.server import STARTUP_SECONDS
from harness.workers import imported, wait_gone, who

from bridgehead.testing import Canary

pytestmark = pytest.mark.skipif(UVICORN, reason="of processes that are ours")

SUCCEEDED = "Another process serves from here on."


def test_on_sighup_a_successor_serves_and_the_process_stays_as_its_parent() -> None:
    with Server("workers_app:app") as server:
        assert who(server) == server.pid
        server.signal(signal.SIGHUP)
        server.wait_line(SUCCEEDED, timeout=STARTUP_SECONDS)
        second = who(server)
        assert second == imported(server)[1] != server.pid
        server.wait_line(f"Finished server process [{server.pid}]")
        # It is a parent of one worker from here on, which is replaced when it dies, or on SIGHUP.
        os.kill(second, signal.SIGKILL)
        server.wait_line(f"Worker [{second}] was killed by SIGKILL.")
        server.wait_line("app: imported by", count=3, timeout=STARTUP_SECONDS)
        assert who(server) == imported(server)[2]
        server.signal(signal.SIGHUP)
        server.wait_line("The reload is complete.", timeout=STARTUP_SECONDS)
        assert who(server) == imported(server)[3]
        server.stop()
        assert f"app: shutdown of {imported(server)[3]}\n" in server.stderr
        wait_gone(imported(server)[1:])


def test_on_sigttin_two_workers_succeed_the_process_and_sigttou_takes_none_away_from_it() -> None:
    with Server("workers_app:app") as server:
        server.signal(signal.SIGTTOU)
        server.wait_line("there is no worker to take away.")
        assert who(server) == server.pid
        server.signal(signal.SIGTTIN)
        server.wait_line(f"Finished server process [{server.pid}]", timeout=STARTUP_SECONDS)
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        left = set(imported(server)[1:])
        assert len(left) == 2
        while left:
            left.discard(who(server))
        server.signal(signal.SIGTTOU)
        server.wait_line("1 workers are wanted.")
        server.wait_line("app: shutdown of ", count=2, timeout=STARTUP_SECONDS)
        assert who(server) in imported(server)[1:]
        server.stop()
        wait_gone(imported(server)[1:])


READS = """
import threading

def reads():
    while not os.path.exists(os.environ["RELEASE"]):
        time.sleep(0.01)
    try:
        os.read(os.open("/dev/tty", os.O_RDONLY), 1)
    except OSError as error:
        say(f"cannot read: {error.errno}")

threading.Thread(target=reads, daemon=True).start()
"""


def test_an_application_that_reads_from_a_terminal_in_its_background_asks_for_one_worker_at_most(
    tmp_path: Path,
) -> None:
    (tmp_path / "main.py").write_text((APPS / "workers_app.py").read_text() + READS)
    release = tmp_path / "release"
    command = [sys.executable, "-m", "bridgehead", "main:app", "--port", "0", "--no-use-colors"]
    # The leader of the session is in the foreground, and what it starts is not.
    leader = "import os, subprocess, sys; subprocess.run(sys.argv[1:], preexec_fn=os.setpgrp)"
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        environment = {**os.environ, "RELEASE": str(release)}
        os.execve(sys.executable, [sys.executable, "-c", leader, *command], environment)
    said = ""

    def until(text: str, count: int = 1) -> None:
        nonlocal said
        while said.count(text) < count:
            said += os.read(terminal, 65536).decode()

    until("Press CTRL+C")
    number = re.search(r"Started server process \[(\d+)\]", said)
    assert number is not None
    release.touch()
    try:
        # The process itself, and both that succeed it.
        until(f"cannot read: {errno.EIO}", count=3)
    finally:
        os.kill(int(number[1]), signal.SIGTERM)
        os.kill(int(number[1]), signal.SIGCONT)
    with contextlib.suppress(OSError):  # nobody has it open any more
        while True:
            said += os.read(terminal, 65536).decode()
    os.close(terminal)
    os.waitpid(process, 0)
    assert said.count("One worker more is wanted") == 1
    assert said.count("2 workers are wanted.") == 1


LATE = """
import pathlib

def says_it_late(mark=pathlib.Path("said")):
    loop = asyncio.get_running_loop()
    close = loop.close

    def close_and_say():
        close()
        os.kill(os.getpid(), signal.SIGHUP)

    if not mark.exists():
        mark.touch()
        loop.close = close_and_say

says_it_late()
"""


def test_a_hangup_that_comes_when_the_loop_is_closed_is_for_the_parent_that_the_process_becomes(
    tmp_path: Path,
) -> None:
    (tmp_path / "main.py").write_text((APPS / "workers_app.py").read_text() + LATE)
    with Server("main:app", "--loop", "asyncio", cwd=tmp_path) as server:
        server.signal(signal.SIGHUP)
        server.wait_line(SUCCEEDED, timeout=STARTUP_SECONDS)
        server.wait_line("The reload is complete.", timeout=STARTUP_SECONDS)
        assert who(server) == imported(server)[2]
        server.stop()


ROTATES = LATE.replace("SIGHUP", "SIGUSR1").replace(
    "        os.kill",
    """        os.rename("log", "log.1")
        os.kill""",
)
LOGS = """
import logging

logging.getLogger().addHandler(logging.FileHandler("log"))
"""


def test_logs_that_are_rotated_when_the_loop_is_closed_are_opened_again_by_the_successor(
    tmp_path: Path,
) -> None:
    (tmp_path / "main.py").write_text((APPS / "workers_app.py").read_text() + LOGS + ROTATES)
    with Server("main:app", "--loop", "asyncio", cwd=tmp_path) as server:
        server.signal(signal.SIGHUP)
        server.wait_line(f"Finished server process [{server.pid}]", timeout=STARTUP_SECONDS)
        while not (tmp_path / "log").exists():
            assert who(server) == imported(server)[1]
        server.stop()


@pytest.mark.timeout(120)
def test_no_request_is_lost_through_a_succession_and_the_reloads_after_it(tmp_path: Path) -> None:
    env = {"CANARY_LEDGER": str(tmp_path)}
    target = "bridgehead.testing.canary_app:app"
    with Server(target, "--lifespan", "off", "--no-access-log", env=env) as server:
        with Canary(server.url, ["/", "/?wait=0.05&pieces=3"], ledger=tmp_path, rate=200) as canary:
            server.signal(signal.SIGHUP)
            server.wait_line(f"Finished server process [{server.pid}]", timeout=STARTUP_SECONDS)
            for number in (1, 2):
                server.signal(signal.SIGHUP)
                server.wait_line("The reload is complete.", count=number, timeout=STARTUP_SECONDS)
            canary.wait_for(100)
            verdict = canary.check()
        verdict.assert_kept()
        assert {each.status for each in canary.log} == {200}
        server.stop()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("limit", "why"),
    [(("--limit-max-requests", "100"), "has had "), (("--worker-max-rss", "1M"), "takes ")],
    ids=["requests", "memory"],
)
def test_a_limit_has_a_single_process_succeeded(tmp_path: Path, limit: tuple[str, str], why: str) -> None:
    env = {"CANARY_LEDGER": str(tmp_path)}
    options = ("--lifespan", "off", "--no-access-log", *limit)
    with Server("bridgehead.testing.canary_app:app", *options, env=env) as server:
        with Canary(server.url, "/", ledger=tmp_path, rate=200) as canary:
            server.wait_line(f"Process [{server.pid}] {why}", timeout=STARTUP_SECONDS)
            server.wait_line("Another takes over.", count=3, timeout=STARTUP_SECONDS)
            verdict = canary.check()
        verdict.assert_kept()
        assert {each.status for each in canary.log} == {200}
        server.stop()


def test_a_successor_that_does_not_come_up_changes_nothing(tmp_path: Path) -> None:
    app = (APPS / "workers_app.py").read_text()
    (tmp_path / "main.py").write_text(app)
    with Server("main:app", cwd=tmp_path, allow=["Traceback"]) as server:
        (tmp_path / "main.py").write_text("this is not Python")
        for number in (1, 2):
            server.signal(signal.SIGHUP)
            server.wait_line("The reload has failed", count=number, timeout=STARTUP_SECONDS)
        assert who(server) == server.pid
        (tmp_path / "main.py").write_text(app + "\n# as it was\n")
        server.signal(signal.SIGHUP)
        server.wait_line(SUCCEEDED, timeout=STARTUP_SECONDS)
        assert who(server) != server.pid
        server.stop()


def test_a_signal_while_the_successor_comes_or_the_predecessor_leaves_ends_both() -> None:
    for line in ("Reloading", SUCCEEDED, "Finished server process"):
        with Server("workers_app:app") as server:
            server.signal(signal.SIGHUP)
            server.wait_line(line, timeout=STARTUP_SECONDS)
            server.signal(signal.SIGTERM)
            server.assert_ended_well()
            wait_gone(imported(server)[1:])


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_that_is_closed_ends_the_server(workers: str) -> None:
    process, terminal = pty.fork()
    if process == 0:
        # Whoever runs the tests may be deaf to it, as below nohup.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.chdir(APPS)
        os.execv(
            sys.executable,
            [sys.executable, "-m", "bridgehead", "workers_app:app", "--port", "0", "--workers", workers],
        )
    said = b""
    while b"Press CTRL+C" not in said:
        said += os.read(terminal, 4096)
    os.close(terminal)
    # It has nowhere to say anything, and need not; its application tries, and so fails in its shutdown.
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) in (1, 120)


def test_a_server_in_code_ends_when_its_time_is_over() -> None:
    program = (
        "import asyncio, bridgehead\n"
        "async def app(scope, receive, send): raise RuntimeError\n"
        "bridgehead.run(app, port=0, worker_lifetime=0.1, lifespan='off')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "has served for " in ended.stderr
