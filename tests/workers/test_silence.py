"""Who is silent is replaced when that has lasted; whoever could not speak, or be heard, is not blamed."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import UVICORN, Server
from harness.server import STARTUP_SECONDS
from harness.workers import imported, serve, wait_all, wait_gone, who

from bridgehead.offspring import _spare_the_core

pytestmark = pytest.mark.skipif(UVICORN or sys.platform != "linux", reason="of workers that are ours")

# A look of the parent's counts for one second at most: some more of them have to fit in.
LIMIT = 5.0


def status(path: Path) -> list[int]:
    """Who serves, as the parent says: it has looked after its workers since it answered somebody before."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(STARTUP_SECONDS)
        asking.connect(str(path))
        asking.sendall(b'{"do": "status"}\n')
        answer = json.loads(asking.makefile().readline())
    return [each["pid"] for each in answer["workers"]]


@pytest.mark.parametrize("paused", ["the parent", "all of them"])
def test_a_parent_or_a_machine_that_was_stopped_for_longer_than_the_limit_blames_nobody(
    paused: str, tmp_path: Path
) -> None:
    path = tmp_path / "control"
    options = ("--timeout-worker-healthcheck", f"{LIMIT}", "--control-socket", str(path))
    with serve(*options) as server:
        wait_all(server)
        workers = imported(server)
        stopped = [server.pid, *(workers if paused == "all of them" else ())]
        for each in stopped:
            os.kill(each, signal.SIGSTOP)
        # It is time itself that must not count.
        time.sleep(LIMIT + 1.0)
        if paused == "the parent":
            assert who(server) in workers
        # Workers come back later than the parent: it looks before they could have said anything.
        os.kill(server.pid, signal.SIGCONT)
        for _ in range(2):
            assert sorted(status(path)) == sorted(workers)
        for each in workers:
            os.kill(each, signal.SIGCONT)
        assert who(server) in workers
        assert "has not answered" not in server.stderr
        server.stop()
        assert imported(server) == workers


def test_a_worker_that_is_stopped_is_replaced_once_that_has_lasted_for_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "control"
    options = ("--timeout-worker-healthcheck", "2", "--control-socket", str(path))
    with serve(*options) as server:
        wait_all(server)
        stopped, other = imported(server)
        os.kill(stopped, signal.SIGSTOP)
        line = server.wait_line(f"Worker [{stopped}] has not answered for ", timeout=STARTUP_SECONDS)
        assert float(line.split(" for ")[1].split()[0]) >= 2.0
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        third = imported(server)[2]
        while who(server) != third:
            pass
        os.kill(stopped, signal.SIGCONT)
        wait_gone([stopped])
        assert sorted(status(path)) == sorted([other, third])
        server.stop()
        assert "was killed by" not in server.stderr


def test_a_worker_whose_call_keeps_pythons_lock_beyond_the_limit_tells_where_it_was_when_it_comes_back(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    options = ("--timeout-worker-healthcheck", "1")
    with serve(*options, env={"PIPE": str(pipe)}, allow=["Traceback"]) as server:
        wait_all(server)
        held = server.connect(timeout=STARTUP_SECONDS)
        held.send(b"GET /keep-the-lock HTTP/1.1\r\nHost: test\r\n\r\n")
        keeps = int(server.wait_line(" keeps the lock").split()[1])
        server.wait_line(f"Worker [{keeps}] has not answered for ", timeout=STARTUP_SECONDS)
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        assert who(server) != keeps
        assert "workers_app.py" not in server.stderr
        os.close(os.open(pipe, os.O_WRONLY))
        # What it was about is finished.
        assert int(held.read_response().body) == keeps
        server.wait_line("workers_app.py", timeout=STARTUP_SECONDS)
        wait_gone([keeps])
        server.stop()


def test_a_worker_whose_call_keeps_pythons_lock_to_the_end_tells_where_it_is_before_it_is_killed(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    options = ("--timeout-worker-healthcheck", "1", "--timeout-graceful-shutdown", "1")
    with serve(*options, env={"PIPE": str(pipe)}, allow=["Fatal Python error"]) as server:
        wait_all(server)
        with server.connect(timeout=STARTUP_SECONDS) as held:
            held.send(b"GET /keep-the-lock HTTP/1.1\r\nHost: test\r\n\r\n")
            keeps = int(server.wait_line(" keeps the lock").split()[1])
            sentence = (
                f"Worker [{keeps}] has not heard that it is to end, since something keeps Python's lock"
            )
            assert " killed. Where it is" in server.wait_line(sentence, timeout=STARTUP_SECONDS)
            wait_gone([keeps])
        server.wait_line("workers_app.py")
        assert server.stderr.index(sentence) < server.stderr.index("workers_app.py")
        server.stop()
        assert server.stderr.count(sentence) == 1
        assert "was killed by" not in server.stderr


LOCKED = """
import asyncio, ctypes, os, signal, sys
os.write(2, f"app: imported by {{os.getpid()}}\\n".encode())
{before}
async def app(scope, receive, send):
    assert scope["type"] == "lifespan"
    await receive()
    await send({{"type": "lifespan.startup.complete"}})
    asyncio.get_running_loop().call_soon(keep_the_lock)
def keep_the_lock():
    sys.setswitchinterval(3600)
    said = b"app: keeps the lock\\n"
    ctypes.PyDLL(None).write(2, said, len(said))
    ctypes.PyDLL(None).pause()
    ctypes.PyDLL(None).sleep(3600)
"""


STOPS = "os.kill(os.getpid(), signal.SIGSTOP)"


@pytest.mark.parametrize(
    ("before", "tells"),
    [("", True), ("signal.signal(signal.SIGABRT, lambda *_: None)", False), (STOPS, False)],
)
def test_a_worker_that_does_not_hear_of_the_stop_is_ended_whatever_it_does_by_sigabrt(
    before: str, tells: bool, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text(LOCKED.format(before=before))
    options = ("--workers", "2", "--timeout-graceful-shutdown", "1")
    with Server("main:app", *options, cwd=tmp_path, allow=["Fatal"], ready=False) as server:
        if before != STOPS:
            server.wait_line("app: keeps the lock", count=2, timeout=STARTUP_SECONDS)
        else:
            server.wait_line("app: imported by", count=2, timeout=STARTUP_SECONDS)
            for each in imported(server):
                while Path(f"/proc/{each}/stat").read_text().rpartition(") ")[2][0] != "T":
                    assert server.process.poll() is None
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 1
        assert server.stderr.count("has not heard that it is to end") == 2
        # Each of the two has written alone: their lines are not mixed.
        assert server.stderr.count(" in keep_the_lock\n") == (2 if tells else 0)


def test_a_worker_that_is_ended_leaves_no_core_file() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    before = resource.prlimit(child.pid, resource.RLIMIT_CORE)
    _spare_the_core(child.pid)
    assert resource.prlimit(child.pid, resource.RLIMIT_CORE) == (min(1, before[1] % 2**64), before[1])
    child.communicate(b"\n")
    _spare_the_core(child.pid)  # nobody's number any more
