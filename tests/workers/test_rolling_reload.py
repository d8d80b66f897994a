"""SIGHUP, SIGTTIN and SIGTTOU: workers come and go, and clients do not notice."""

from __future__ import annotations

import contextlib
import itertools
import signal
import socket
from pathlib import Path

import pytest
from harness import UVICORN, Client, Server, WebSocket, request
from harness.server import STARTUP_SECONDS
from harness.websocket import close_frame
from harness.workers import imported, serve, wait_all, wait_gone, who

from bridgehead.supervisor import anew
from bridgehead.testing import Canary

pytestmark = pytest.mark.skipif(UVICORN, reason="of workers that are ours")

APP = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": {body!r}}})
"""
COMPLETE = "The reload is complete."


def save(folder: Path, body: str) -> None:
    # Of another length each time: Python takes compiled code for current by the second and the length.
    (folder / "main.py").write_text(APP.format(body=body.encode()))


def test_a_reload_replaces_each_worker_and_a_broken_version_none(tmp_path: Path) -> None:
    save(tmp_path, "v1")
    with Server("main:app", "--workers", "2", "--no-access-log", cwd=tmp_path, allow=["Traceback"]) as server:
        wait_all(server)
        save(tmp_path, "v2, longer")
        server.signal(signal.SIGHUP)
        seen = set()
        while COMPLETE not in server.stderr:
            answer = server.ask("/")
            assert answer.status == 200
            seen.add(answer.body)
        assert seen <= {b"v1", b"v2, longer"}
        assert {server.ask("/").body for _ in range(20)} == {b"v2, longer"}
        (tmp_path / "main.py").write_text("this is not Python")
        for failed in (1, 2):
            server.signal(signal.SIGHUP)
            line = "The reload has failed: the new worker did not start."
            server.wait_line(line, count=failed, timeout=STARTUP_SECONDS)
            assert server.stderr.count("bridgehead: error: main raised NameError") == failed
        assert {server.ask("/").body for _ in range(20)} == {b"v2, longer"}
        save(tmp_path, "v3, longer still")
        server.signal(signal.SIGHUP)
        server.wait_line(COMPLETE, count=2, timeout=STARTUP_SECONDS)
        assert {server.ask("/").body for _ in range(20)} == {b"v3, longer still"}


def test_many_reloads_at_once_and_a_stop_among_them_leave_nobody() -> None:
    with serve() as server:
        wait_all(server)
        for _ in range(20):
            server.signal(signal.SIGHUP)
        server.wait_line("app: imported by", count=3, timeout=STARTUP_SECONDS)
        assert who(server) in imported(server)
        server.signal(signal.SIGHUP)
        server.stop()
        wait_gone(imported(server))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("options", [("--workers", "2"), ("--control-socket", "control")])
def test_a_new_program_takes_the_parents_place_under_load(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("from bridgehead.testing.canary_app import app\n")
    env = {"CANARY_LEDGER": str(tmp_path / "ledger")}
    more = ("--lifespan", "off", "--no-access-log", "--pidfile", str(tmp_path / "pid"))
    with Server("main:app", *options, *more, cwd=tmp_path, env=env) as server:
        wait_all(server)
        with Canary(server.url, ["/", "/?wait=0.02"], ledger=tmp_path / "ledger", rate=100) as canary:
            for number in (1, 2):
                server.signal(signal.SIGUSR2)
                server.wait_line("A new program is the parent now.", count=number, timeout=STARTUP_SECONDS)
                server.wait_line(COMPLETE, count=number, timeout=STARTUP_SECONDS)
            verdict = canary.check()
        verdict.assert_kept()
        assert {each.status for each in canary.log} == {200}
        assert int((tmp_path / "pid").read_text()) == server.pid
        server.stop()
    assert not (tmp_path / "pid").exists()
    assert not (tmp_path / "control").exists()


def test_what_workers_share_is_still_shared_behind_a_new_program(tmp_path: Path) -> None:
    release = tmp_path / "release"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number, address = listener.fileno(), listener.getsockname()
        with serve("--fd", str(number), pass_fds=[number], env={"RELEASE": str(release)}) as server:
            wait_all(server)
            server.signal(signal.SIGUSR2)
            server.wait_line(COMPLETE, timeout=STARTUP_SECONDS)
            for turn in (0, 1):
                with contextlib.ExitStack() as stack:
                    clients = [
                        stack.enter_context(Client(address, timeout=STARTUP_SECONDS)) for _ in range(6)
                    ]
                    for each in clients:
                        each.send(request("/wait"))
                    server.wait_line(" waits", count=6 * (turn + 1), timeout=STARTUP_SECONDS)
                    server.signal((signal.SIGHUP, signal.SIGTERM)[turn])
                    server.wait_line("Shutting down", count=2 * turn + 3, timeout=STARTUP_SECONDS)
                    release.touch()
                    assert {each.read_response().status for each in clients} == {200}
                release.unlink()
            server.assert_ended_well()
            wait_gone(imported(server))


def test_a_new_program_that_does_not_start_leaves_the_old_one_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert not anew.starts()
    monkeypatch.undo()
    assert anew.starts()


def test_workers_are_added_and_taken_away() -> None:
    with serve() as server:
        wait_all(server)
        server.signal(signal.SIGTTIN)
        server.wait_line("All 3 workers are ready.", timeout=STARTUP_SECONDS)
        assert who(server) in imported(server)
        for wanted in (2, 1):
            server.signal(signal.SIGTTOU)
            server.wait_line(f"{wanted} workers are wanted.")
        server.wait_line("Finished server process", count=2, timeout=STARTUP_SECONDS)
        [left] = {who(server) for _ in range(40)}
        server.signal(signal.SIGTTOU)
        server.wait_line("1 workers are wanted.", count=2)
        assert who(server) == left
        server.stop()


@pytest.mark.timeout(120)
def test_reloads_under_load_lose_no_request(tmp_path: Path) -> None:
    app = "import time\ntime.sleep(0.5)\nfrom bridgehead.testing.canary_app import app\n"
    (tmp_path / "main.py").write_text(app)
    env = {"CANARY_LEDGER": str(tmp_path / "ledger")}
    options = ("--workers", "2", "--lifespan", "off", "--no-access-log")
    with Server("main:app", *options, cwd=tmp_path, env=env) as server:
        wait_all(server)
        with Canary(server.url, ["/", "/?wait=0.02"], ledger=tmp_path / "ledger", rate=200) as canary:
            for number in (1, 2, 3):
                server.signal(signal.SIGHUP)
                server.wait_line(COMPLETE, count=number, timeout=STARTUP_SECONDS)
            verdict = canary.check()
        verdict.assert_kept()
        assert {each.status for each in canary.log} == {200}
        server.stop()


def test_a_request_that_runs_through_a_reload_is_finished_by_the_old_worker() -> None:
    with Server("lifecycle_app:app", "--workers", "2") as server:
        wait_all(server)
        running = server.connect(timeout=STARTUP_SECONDS)
        running.send(request("/sleep?name=x&seconds=4"))
        server.signal(signal.SIGHUP)
        server.wait_line(COMPLETE, timeout=STARTUP_SECONDS)
        answer = running.read_response()
        assert answer.status == 200
        assert answer.header("connection") == "close"
        server.stop()


def test_requests_through_a_reload_are_finished_and_websockets_told_to_come_again(tmp_path: Path) -> None:
    release = tmp_path / "release"
    with serve(env={"RELEASE": str(release)}) as server:
        wait_all(server)
        old = set(imported(server))
        sockets: dict[int, list[WebSocket]] = {}
        while sockets.keys() != old:
            each = WebSocket(server.connect(timeout=STARTUP_SECONDS), "/")
            sockets.setdefault(int(each.read_frame().payload), []).append(each)
        running: dict[str, Client] = {}
        for count in itertools.count(1):
            client = server.connect(timeout=STARTUP_SECONDS)
            client.send(request("/wait"))
            running[server.wait_line(" waits", count=count).split()[1]] = client
            if running.keys() == {str(pid) for pid in old}:
                break
        server.signal(signal.SIGHUP)
        server.wait_line("The reload is complete.", timeout=STARTUP_SECONDS)
        assert who(server) not in old
        for each in (each for them in sockets.values() for each in them):
            assert each.read_frame().closing == (1012, "the server stops")
            each.client.try_send(close_frame(1012))
        # Those who sent them a while ago are answered by whom they asked.
        release.touch()
        for pid, client in running.items():
            answer = client.read_response()
            assert (answer.status, answer.body.decode(), answer.header("connection")) == (200, pid, "close")
        wait_gone(old)
        assert all(f"app: {pid} was left by 1012\n" in server.stderr for pid in old)
        server.stop()
