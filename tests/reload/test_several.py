"""`serve --reload --workers 2`: all of them have the new code after a save, as one has."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from harness import APPS, UVICORN, Server, request
from harness.server import STARTUP_SECONDS
from harness.workers import imported, wait_all, wait_gone, who

pytestmark = pytest.mark.skipif(UVICORN, reason="of lines and exit codes that are ours")

APP = (APPS / "workers_app.py").read_text()
READY = "All 2 workers are ready."
AT_MOST = 400  # requests in which each of two workers has its turn, but for one time in 2**399


def save(folder: Path, text: str = "") -> None:
    # As editors do: at no time is there half a file.
    (folder / "main.py.new").write_text(APP + text)
    (folder / "main.py.new").rename(folder / "main.py")


@pytest.fixture
def server(tmp_path: Path) -> Server:
    save(tmp_path)
    options = ("--reload", "--workers", "2", "--no-access-log")
    env = {"RELEASE": str(tmp_path / "release")}
    return Server("main:app", *options, cwd=tmp_path, env=env, allow=["Traceback"])


def wait_line(server: Server, text: str, count: int = 1) -> str:
    return server.wait_line(text, count=count, timeout=STARTUP_SECONDS)


def answering(server: Server, wanted: set[int]) -> set[int]:
    """Who answers, until all have that are wanted."""
    seen = set()
    for _ in range(AT_MOST):
        seen.add(who(server))
        if seen >= wanted:
            break
    return seen


def test_a_save_replaces_each_worker_and_a_broken_one_is_told_once(tmp_path: Path, server: Server) -> None:
    with server:
        wait_all(server)
        first = set(imported(server))
        assert answering(server, first) == first
        save(tmp_path, "\n# another\n")
        wait_line(server, READY, 2)
        second = set(imported(server)) - first
        assert len(second) == 2
        assert answering(server, second) == second
        wait_gone(first)
        save(tmp_path, "\n1 / 0\n")
        wait_line(server, "The application did not start. Waiting for a change.")
        assert {server.ask("/").status for _ in range(20)} == {503}
        assert server.stderr.count("Traceback") == 1
        save(tmp_path, "\n# mended\n")
        wait_line(server, READY, 3)
        third = set(imported(server)[-2:])
        assert answering(server, third) == third
        server.stop()
        wait_gone(third)
        assert server.stderr.count(" running on ") == 3
        assert server.stderr.count("app: shutdown of") == 6


def test_others_serve_on_for_one_that_dies_and_the_next_save_starts_all(
    tmp_path: Path, server: Server
) -> None:
    with server:
        wait_all(server)
        dead, left = imported(server)
        os.kill(dead, signal.SIGKILL)
        wait_line(
            server, f"Server process [{dead}] was killed by SIGKILL. The others serve on until a change."
        )
        assert {who(server) for _ in range(20)} == {left}
        os.kill(left, signal.SIGKILL)
        wait_line(server, f"Server process [{left}] was killed by SIGKILL. Waiting for a change.")
        assert server.ask("/").status == 503
        save(tmp_path, "\n# another\n")
        wait_line(server, READY, 2)
        assert who(server) in imported(server)[2:]


def test_who_comes_after_a_save_is_answered_by_the_new_code_though_one_of_the_old_is_stuck(
    tmp_path: Path, server: Server
) -> None:
    with server:
        wait_all(server)
        old = imported(server)
        server.connect().send(request("/block"))
        stuck = int(wait_line(server, " is blocked").split()[1])
        save(tmp_path, "\n# another\n")
        wait_line(server, "Bridgehead detected changes in ")
        assert not {who(server) for _ in range(9)} & set(old)
        line = wait_line(server, "did not stop within 2 s of being told to: ")
        assert "the request GET /block blocks the event loop, in app() at main.py:" in line
        assert f"Ending process [{stuck}]." in line
        wait_line(server, READY, 2)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sighup_reloads_and_signals_that_scale_change_nothing(tmp_path: Path, workers: str) -> None:
    save(tmp_path)
    options = ("--reload", "--workers", workers, "--no-access-log")
    with Server("main:app", *options, cwd=tmp_path, preexec_fn=os.setsid) as server:
        count = int(workers)
        wait_line(server, "Application startup complete.", count)
        for number in (signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR2):
            server.signal(number)
            wait_line(server, f"{number.name} is for a server without --reload: nothing is done.")
        first = set(imported(server))
        # To all of them, as when a shell passes it on.
        os.killpg(server.pid, signal.SIGHUP)
        wait_line(server, "Application startup complete.", 2 * count)
        wait_gone(first)
        assert who(server) in set(imported(server)) - first
        server.stop()
        assert "was killed by" not in server.stderr
        wait_gone(imported(server))
