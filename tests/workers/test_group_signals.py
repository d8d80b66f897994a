"""Signals that reach a whole group of processes, or a worker by mistake: they are the parent's affair."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from harness import APPS, UVICORN, request
from harness.server import STARTUP_SECONDS
from harness.workers import imported, serve, wait_all, wait_gone, who

pytestmark = pytest.mark.skipif(UVICORN or sys.platform != "linux", reason="of processes that are ours")

MEANT_FOR_PARENTS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU)


def test_a_hangup_of_the_whole_group_reloads_and_no_request_is_lost(tmp_path: Path) -> None:
    release = tmp_path / "release"
    with serve(env={"RELEASE": str(release)}, preexec_fn=os.setsid) as server:
        wait_all(server)
        first = imported(server)
        streams = [server.connect(timeout=STARTUP_SECONDS) for _ in range(6)]
        for number, each in enumerate(streams):
            each.send(request("/wait"))
            server.wait_line(" waits", count=number + 1)
        os.killpg(server.pid, signal.SIGHUP)
        server.wait_line("app: imported by", count=3, timeout=STARTUP_SECONDS)
        release.touch()
        assert {each.read_response().status for each in streams} == {200}
        server.wait_line("The reload is complete.", timeout=STARTUP_SECONDS)
        wait_gone(first)
        assert who(server) in imported(server)[2:]
        assert "was killed by" not in server.stderr
        server.stop()


@pytest.mark.parametrize("name", ["asyncio", "fused", "fused-uvloop"])
def test_a_worker_is_not_ended_by_what_is_meant_for_its_parent(name: str) -> None:
    with serve("--loop", name) as server:
        wait_all(server)
        workers = set(imported(server))
        for pid in workers:
            for number in MEANT_FOR_PARENTS:
                os.kill(pid, number)
        # Each of them still has its turn.
        left = set(workers)
        while left:
            left.discard(who(server))
        server.stop()
        assert set(imported(server)) == workers
        assert all(f"app: shutdown of {pid}\n" in server.stderr for pid in workers)


def test_a_hangup_while_workers_are_imported_ends_none(tmp_path: Path) -> None:
    app = (APPS / "workers_app.py").read_text()
    mark = tmp_path / "mark"
    once = (
        f"\nfrom pathlib import Path\nif not Path({str(mark)!r}).exists():\n    Path({str(mark)!r}).touch()\n"
    )
    (tmp_path / "main.py").write_text(app + once + "    os.killpg(0, signal.SIGHUP)\n")
    with serve(target="main:app", cwd=tmp_path, preexec_fn=os.setsid) as server:
        server.wait_line("The reload is complete.", timeout=STARTUP_SECONDS)
        server.stop()
        assert "was killed by" not in server.stderr


def test_what_an_application_starts_or_forks_hears_these_signals_as_anywhere(tmp_path: Path) -> None:
    text = (
        "import os, signal, subprocess, sys\n"
        "def disposition():\n"
        "    return [signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)]\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(disposition() != [signal.SIG_DFL] * 3)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "program = 'import signal; signal.raise_signal(signal.SIGHUP)'\n"
        "assert subprocess.run([sys.executable, '-c', program]).returncode == -signal.SIGHUP\n"
        "from workers_app import app\n"
    )
    (tmp_path / "main.py").write_text(text)
    path = os.pathsep.join([str(APPS), *filter(None, [os.environ.get("PYTHONPATH")])])
    with serve(target="main:app", cwd=tmp_path, env={"PYTHONPATH": path}) as server:
        wait_all(server)
        server.stop()
