"""`serve --workers`: several processes on one port, how they start, share and stop."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from harness import UVICORN, Server, request
from harness.processes import of_threads
from harness.server import STARTUP_SECONDS
from harness.workers import imported, serve, wait_all, wait_gone, who

from bridgehead.cli import read_config
from bridgehead.cores import granted
from bridgehead.errors import StartError

pytestmark = pytest.mark.skipif(UVICORN, reason="of lines and exit codes that are ours")

AT_MOST = 400  # requests in which each of two workers has its turn, but for one time in 2**399


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


def test_a_program_may_ask_for_workers() -> None:
    with Server("workers_app:app", env={"LOOP": '{"workers": 2}'}, module="bridgehead_run") as server:
        wait_all(server)
        assert who(server) in imported(server)
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == -signal.SIGTERM


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


def test_reload_serves_from_one_process_and_says_so() -> None:
    with serve("--reload") as server:
        server.wait_line("WARNING:  Reload serves from one process, so 2 workers are not started.")
        children = " ".join(of_threads(server.process.pid, "children").values())
        assert len(children.split()) == 1
