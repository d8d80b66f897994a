"""A worker that is dead, stopped, blocked or not ready holds up nobody who comes."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from harness import UVICORN, Client, Server, request
from harness.server import STARTUP_SECONDS
from harness.workers import imported, serve, wait_all, wait_gone, who

from bridgehead.supervisor.backoff import Backoff, Prospects

pytestmark = pytest.mark.skipif(UVICORN, reason="of workers that are ours")

PATIENCE = 2.0  # seconds for an answer that may never come; then another client comes


def ask_or_leave(server: Server) -> int | None:
    """Who answers a new connection; None if nobody does."""
    with Client(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        client.send(request("/", headers=[("Connection", "close")]))
        try:
            return int(client.read_response().body)
        except TimeoutError:
            return None


def test_a_thousand_clients_are_answered_while_one_worker_is_stopped_and_one_crashes_again_and_again(
    tmp_path: Path,
) -> None:
    for seat in "abc":
        (tmp_path / seat).touch()
    with serve(workers=4, env={"SEATS": str(tmp_path)}) as server:
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        server.wait_line("ended with exit code 9.", timeout=STARTUP_SECONDS)
        stopped = who(server)
        os.kill(stopped, signal.SIGSTOP)
        try:
            answered = {who(server) for _ in range(1000)}
            assert stopped not in answered
        finally:
            os.kill(stopped, signal.SIGCONT)
        server.stop()


def test_a_killed_worker_is_succeeded_and_nobody_else_notices() -> None:
    with serve() as server:
        wait_all(server)
        first, second = imported(server)
        os.kill(first, signal.SIGKILL)
        wait_gone([first])
        while len(imported(server)) < 3:
            assert who(server) != first
        line = f"Worker [{first}] was killed by SIGKILL. Another is started now."
        server.wait_line(line)
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        third = imported(server)[2]
        while who(server) != third:
            pass
        # Exit code 3 says nothing of a start when it comes from a worker that has served.
        server.connect().send(request("/exit"))
        ended = int(server.wait_line("] ended with exit code 3. Another is").split("[")[1].split("]")[0])
        server.wait_line("Application startup complete.", count=4, timeout=STARTUP_SECONDS)
        # Told by somebody else, a worker ends in order, and is succeeded as well.
        left = second if ended == third else third
        os.kill(left, signal.SIGTERM)
        wait_gone([left])
        server.wait_line("Application startup complete.", count=5, timeout=STARTUP_SECONDS)
        server.stop()


@pytest.mark.parametrize(
    ("path", "how"),
    [
        ("/exit-well", "ended with exit code 0"),
        ("/exit", "ended with exit code 3"),
        ("/abort", "was killed by SIGABRT"),
        ("/fault", "was killed by SIGSEGV"),
    ],
)
def test_however_a_handler_ends_its_worker_that_is_told_and_another_serves(path: str, how: str) -> None:
    with serve(allow=["Fatal Python error"]) as server:
        wait_all(server)
        server.connect().send(request(path))
        line = server.wait_line(f"] {how}. Another is started now.")
        assert ('workers_app.py", line' in server.stderr) == ("was killed" in how)
        ended = int(line.split("[")[1].split("]")[0])
        [left] = set(imported(server)) - {ended}
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        third = imported(server)[2]
        while who(server) != third:
            pass
        while who(server) != left:
            pass
        server.stop()


def test_workers_of_which_none_comes_up_are_given_up(tmp_path: Path) -> None:
    with serve(env={"SEATS": str(tmp_path)}, ready=False) as server:
        assert server.wait_exit(60) == 1
        assert "No worker has come up in 5 tries: giving up." in server.stderr
        wait_gone(imported(server))


def test_workers_of_which_none_stays_up_are_given_up() -> None:
    with serve(env={"SHORT_LIVED": "yes"}, ready=False) as server:
        assert server.wait_exit(60) == 1
        assert re.search(r"No worker has stayed up in [56] tries: giving up\.", server.stderr)
        wait_gone(imported(server))


def test_while_others_serve_or_once_served_for_long_nobody_is_given_up() -> None:
    hope = Prospects()
    for served in (None, 0.1, 4.9):
        hope.saw(served)
    assert [hope.are_gone(failures, serving=False) for failures in (4, 5)] == [False, True]
    assert not hope.are_gone(5, serving=True)
    hope.saw(5.0)
    assert not hope.are_gone(100, serving=False)
    assert not Prospects(steady=True).are_gone(100, serving=False)


def test_a_crash_loop_waits_ever_longer_and_a_steady_worker_ends_it() -> None:
    backoff = Backoff()
    assert [backoff.after(served) for served in (None, 0.1, None, 4.9)] == [0.0, 0.5, 1.0, 2.0]
    assert [backoff.after(None) for _ in range(20)][-1] == 30.0
    assert [backoff.after(served) for served in (5.0, 0.1, 0.1)] == [0.0, 0.0, 0.5]


@pytest.mark.parametrize("name", ["asyncio", "fused", "fused-uvloop"])
def test_who_comes_while_a_worker_is_blocked_is_answered_by_another(tmp_path: Path, name: str) -> None:
    release = tmp_path / "release"
    with serve("--loop", name, env={"RELEASE": str(release)}) as server:
        wait_all(server)
        held = server.connect(timeout=STARTUP_SECONDS)
        held.send(request("/block"))
        blocked = int(server.wait_line(" is blocked").split()[1])
        # Who came in the first moment may have been let in by it. Afterwards nobody is: so many in a row
        # would be one in a million by chance.
        in_a_row = 0
        while in_a_row < 20:
            answered = ask_or_leave(server)
            assert answered != blocked
            in_a_row = 0 if answered is None else in_a_row + 1
        release.touch()
        assert held.read_response().status == 200
        while who(server) != blocked:
            pass
        server.stop()


def test_who_comes_while_a_worker_is_in_a_call_that_keeps_pythons_lock_is_answered_by_another(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with serve(env={"PIPE": str(pipe)}) as server:
        wait_all(server)
        held = server.connect(timeout=STARTUP_SECONDS)
        held.send(request("/keep-the-lock"))
        keeps = int(server.wait_line(" keeps the lock").split()[1])
        in_a_row = 0
        while in_a_row < 20:
            answered = ask_or_leave(server)
            assert answered != keeps
            in_a_row = 0 if answered is None else in_a_row + 1
        os.close(os.open(pipe, os.O_WRONLY))
        # It was not replaced.
        assert int(held.read_response().body) == keeps
        server.stop()


def test_a_worker_that_computes_all_the_time_leaves_others_their_share_of_who_comes(tmp_path: Path) -> None:
    release = tmp_path / "release"
    with serve(env={"RELEASE": str(release)}) as server:
        wait_all(server)
        held = server.connect(timeout=STARTUP_SECONDS)
        held.send(request("/burn"))
        burns = int(server.wait_line(" burns").split()[1])
        answered = [who(server) for _ in range(100)]
        # The kernel gives each socket half, and all of it to the other when one does not keep up.
        assert sum(each != burns for each in answered) >= 20
        release.touch()
        held.read_response()
        server.stop()


def test_a_worker_that_stays_blocked_tells_where_it_is_and_is_replaced(tmp_path: Path) -> None:
    release = tmp_path / "release"
    env = {"RELEASE": str(release)}
    with serve("--timeout-worker-healthcheck", "1", env=env, allow=["Traceback"]) as server:
        wait_all(server)
        held = server.connect(timeout=STARTUP_SECONDS)
        held.send(request("/block"))
        blocked = int(server.wait_line(" is blocked").split()[1])
        server.wait_line(f"Worker [{blocked}] has not answered for ", timeout=STARTUP_SECONDS)
        # Of the thread, and of the task.
        server.wait_line("workers_app.py", timeout=STARTUP_SECONDS)
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        # Nobody is killed who comes back in time: what it was about is finished.
        release.touch()
        assert held.read_response().status == 200
        wait_gone([blocked])
        assert who(server) != blocked
        server.stop()
