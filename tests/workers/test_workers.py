"""`serve --workers`: several processes on one port, how they start, share and stop."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest
from harness import UVICORN, Server, request
from harness.server import STARTUP_SECONDS
from harness.workers import imported, serve, wait_all, wait_gone, who

from bridgehead.cli import read_config
from bridgehead.cores import granted
from bridgehead.errors import StartError

pytestmark = pytest.mark.skipif(UVICORN, reason="of lines and exit codes that are ours")

FAILING = """
async def app(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})
"""
AT_MOST = 400  # requests in which each of two workers has its turn, but for one time in 2**399


def is_listened_at(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(STARTUP_SECONDS)
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_workers_share_a_port_and_stop_in_order() -> None:
    with serve() as server:
        wait_all(server)
        workers = set(imported(server))
        assert len(workers) == 2
        assert server.pid not in workers, "the parent has imported the application"
        answered = set()
        for _ in range(AT_MOST):
            answered.add(who(server))
            if answered == workers:
                break
        assert answered == workers
        server.stop()
        said = server.stderr
        assert f"Started parent process [{server.pid}]" in said
        assert f"Stopping parent process [{server.pid}]" in said
        for pid in workers:
            assert f"app: shutdown of {pid}\n" in said
            assert f"Finished server process [{pid}]" in said
        assert said.count(" running on ") == 1
        wait_gone(workers)


def test_workers_share_a_unix_socket_and_leave_no_file(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with serve("--uds", str(path)) as server:
        wait_all(server)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(STARTUP_SECONDS)
            client.connect(str(path))
            client.sendall(request("/", headers=[("Connection", "close")]))
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        server.stop()
    assert not path.exists()


@pytest.mark.parametrize("fails", ["import not_there", FAILING])
def test_workers_that_do_not_start_end_all_whatever_they_have_left_behind(fails: str, tmp_path: Path) -> None:
    left = "import atexit, threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    (tmp_path / "main.py").write_text(f"{left}atexit.register(threading.Event().wait)\n{fails}\n")
    with serve(target="main:app", cwd=tmp_path, ready=False, allow=["Traceback"]) as server:
        assert server.wait_exit() == 3


def test_a_port_in_use_is_an_error_and_never_shared() -> None:
    with serve() as first, serve("--port", str(first.port), ready=False) as second:
        assert second.wait_exit() == 3
        assert f"127.0.0.1:{first.port} is already in use" in second.stderr
        assert not imported(second)


def test_a_start_that_fails_ends_with_code_3_and_is_not_tried_again() -> None:
    with serve(env={"REFUSES": "1"}, ready=False) as server:
        assert server.wait_exit() == 3
        assert "not today" in server.stderr
        assert "Another is started" not in server.stderr
        wait_gone(imported(server))
        assert len(imported(server)) <= 2


def test_a_start_that_fails_says_nothing_of_a_worker_that_had_no_time_to_start(tmp_path: Path) -> None:
    # The first one is in its import when the second one refuses.
    text = "import signal, sys\nif 'worker 2' not in ' '.join(sys.orig_argv):\n    signal.pause()\n1 / 0\n"
    (tmp_path / "main.py").write_text(text)
    with serve(target="main:app", cwd=tmp_path, ready=False, allow=["Traceback"]) as server:
        assert server.wait_exit() == 3
        assert server.stderr.count("Traceback") == 1
        assert "killed" not in server.stderr


def test_workers_that_fail_together_say_it_once(tmp_path: Path) -> None:
    # Each waits for the other before it fails.
    text = (
        "import os, time\nfrom pathlib import Path\nhere = Path(__file__).parent\n"
        "(here / f'{os.getpid()}.here').touch()\n"
        "while len([*here.glob('*.here')]) < 2: time.sleep(0.001)\n"
        "1 / 0\n"
    )
    (tmp_path / "main.py").write_text(text)
    with serve(target="main:app", cwd=tmp_path, ready=False, allow=["Traceback"]) as server:
        assert server.wait_exit() == 3
        assert server.stderr.count("Traceback") == 1
        assert server.stderr.count("bridgehead: error: main raised ZeroDivisionError") == 1
        assert "killed" not in server.stderr


def test_a_worker_that_somebody_ends_is_told_of_and_succeeded() -> None:
    with serve(preexec_fn=os.setsid) as server:
        wait_all(server)
        first = imported(server)[0]
        os.kill(first, signal.SIGTERM)
        server.wait_line(f"Worker [{first}] ends in order, as somebody has told it to. Another is started")
        server.wait_line("app: imported by", count=3, timeout=STARTUP_SECONDS)
        server.wait_line("Application startup complete.", count=3, timeout=STARTUP_SECONDS)
        # Ctrl+C tells all of them, and that is the parent's own end.
        os.killpg(server.pid, signal.SIGINT)
        server.assert_ended_well()
        assert server.stderr.count("as somebody has told it to") == 1


def test_a_worker_that_hears_of_the_end_before_its_parent_is_not_succeeded() -> None:
    with serve() as server:
        wait_all(server)
        server.signal(signal.SIGSTOP)
        for pid in imported(server):
            os.kill(pid, signal.SIGINT)
        server.wait_line("Shutting down", count=2)
        server.signal(signal.SIGINT)
        server.signal(signal.SIGCONT)
        server.assert_ended_well()
        assert "as somebody has told it to" not in server.stderr
        assert len(imported(server)) == 2


def test_a_worker_whose_shutdown_fails_decides_the_exit_code() -> None:
    with Server("lifecycle_app:fails_at_shutdown", "--workers", "2") as server:
        server.wait_line("All 2 workers are ready.", timeout=STARTUP_SECONDS)
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 1
        assert server.stderr.count("could not flush") == 2
        assert "Stopping parent process" in server.stderr


def test_two_signals_end_all_at_once() -> None:
    with serve() as server:
        wait_all(server)
        stream = server.connect()
        stream.send(request("/stream"))
        server.wait_line("app: streams")
        server.signal(signal.SIGTERM)
        server.wait_line("Shutting down")
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == -signal.SIGTERM
        wait_gone(imported(server))


def test_a_sigquit_ends_all_at_once() -> None:
    with serve() as server:
        wait_all(server)
        server.signal(signal.SIGQUIT)
        assert server.wait_exit() == -signal.SIGQUIT
        wait_gone(imported(server))
        assert "app: shutdown" not in server.stderr


def test_workers_whose_parent_was_killed_finish_and_free_the_port() -> None:
    with serve() as server:
        wait_all(server)
        workers = set(imported(server))
        server.signal(signal.SIGKILL)
        wait_gone(workers)
        for pid in workers:
            server.wait_line(f"app: shutdown of {pid}\n")
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", server.port))


def test_a_worker_that_finishes_behind_a_killed_parent_lets_nobody_wait_in_vain() -> None:
    with serve() as server:
        wait_all(server)
        with server.connect() as stream:
            stream.send(request("/stream"))
            busy = int(server.wait_line("app: streams").split()[-1])
            [idle] = {*imported(server)} - {busy}
            server.signal(signal.SIGKILL)
            wait_gone([idle])
            server.wait_line("Shutting down", count=2)
            # It listens no more once those are let in who wait.
            deadline = time.monotonic() + STARTUP_SECONDS
            while is_listened_at(server.port):
                assert time.monotonic() < deadline
            assert f"app: shutdown of {busy}" not in server.stderr
            stream.close()
        wait_gone([busy])


@pytest.mark.parametrize("how", ["blocked", "stopped"])
def test_behind_a_killed_parent_nobody_waits_for_a_worker_that_does_nothing(how: str, tmp_path: Path) -> None:
    release = tmp_path / "release"
    with serve(env={"RELEASE": str(release)}) as server:
        wait_all(server)
        with server.connect() as client:
            if how == "blocked":
                client.send(request("/block"))
                idler = int(server.wait_line(" is blocked").split()[1])
            else:
                idler = who(server)
                os.kill(idler, signal.SIGSTOP)
            try:
                [other] = {*imported(server)} - {idler}
                server.signal(signal.SIGKILL)
                # Both: one that is being ended closes its files one by one.
                wait_gone([server.pid, other])
                assert not is_listened_at(server.port)
                # Another server may be there, though the socket of this one is still somebody's.
                with Server("workers_app:app", "--port", str(server.port)) as next_one:
                    assert who(next_one) == next_one.pid
                    next_one.stop()
            finally:
                release.touch()
                os.kill(idler, signal.SIGCONT)
        wait_gone([idler])
        server.wait_line(f"app: shutdown of {idler}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_may_ask_for_workers_and_goes_on_after_a_signal(number: signal.Signals) -> None:
    with Server("workers_app:app", env={"LOOP": '{"workers": 2}'}, module="bridgehead_run") as server:
        wait_all(server)
        assert who(server) in imported(server)
        server.stop(number)


def test_the_environment_sets_workers_and_a_flag_outranks_it() -> None:
    assert read_config(["x:app"], {"WEB_CONCURRENCY": "3"}).workers == 3
    assert read_config(["x:app", "--workers", "auto"], {"WEB_CONCURRENCY": "3"}).workers == "auto"
    with pytest.raises(StartError, match="WEB_CONCURRENCY: 'many' is not a whole number"):
        read_config(["x:app"], {"WEB_CONCURRENCY": "many"})


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/box/app\n", {"box/cpu.max": "100000 100000", "box/app/cpu.max": "max 100000"}, 1),
        ("0::/\n", {"cpu.max": "50000 100000"}, 1),
        (
            "3:cpu,cpuacct:/box\n",
            {"cpu/box/cpu.cfs_quota_us": "90000", "cpu/box/cpu.cfs_period_us": "100000"},
            1,
        ),
        ("0::/\n", {"cpu.max": "99900000 100000"}, len(os.sched_getaffinity(0))),
        ("0::/\n", {}, len(os.sched_getaffinity(0))),
    ],
)
def test_auto_is_what_the_cgroup_grants(
    groups: str, files: dict[str, str], cores: int, tmp_path: Path
) -> None:
    groups_file = {"proc/self/cgroup": groups}
    for name, text in (groups_file | {f"sys/fs/cgroup/{name}": text for name, text in files.items()}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert granted(tmp_path) == cores
