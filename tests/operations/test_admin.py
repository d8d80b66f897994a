"""`--admin`: operators are answered by Rust, whatever Python does."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness import UVICORN, Server, request
from harness.http2 import Http2Client
from harness.server import STARTUP_SECONDS
from harness.workers import imported, serve, wait_all
from operators import PATIENCE, Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

WAITING = 'bridgehead_requests{at="permit"}'
ADMIN = ("--admin", "127.0.0.1:0")
GET = (
    'http_request_method="GET",http_response_status_code="200",'
    'network_protocol_version="1.1",url_scheme="http"'
)
ACTIVE = 'http_server_active_requests{http_request_method="GET",url_scheme="http"}'


def test_requests_are_counted_by_method_status_and_protocol(loop: str) -> None:
    with Server("framing_app:app", "--loop", loop, *ADMIN) as server:
        operators = Operators(server)
        before = operators.samples()
        assert f"http_server_request_duration_seconds_count{{{GET}}}" not in before
        for _ in range(3):
            assert server.ask("/").status == 200
        with server.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: b@d\r\n\r\n")
            assert client.read_response().status == 400
        operators.until(lambda: operators.samples()[ACTIVE] == 0)
        # A handler may have something to do behind its answer.
        operators.until(lambda: operators.samples()["bridgehead_request_handler_seconds_count"] == 3)
        seen = operators.samples()
        assert seen[f"http_server_request_duration_seconds_count{{{GET}}}"] == 3
        assert seen['bridgehead_refusals_total{reason="bad_host"}'] == 1
        assert seen['bridgehead_refusals_total{reason="flood"}'] == 0
        # The application returns when its answer may be with its client already.
        operators.until(lambda: operators.samples()["bridgehead_request_handler_seconds_count"] == 3)
        assert seen["bridgehead_request_queue_seconds_count"] == 3
        assert seen["bridgehead_request_first_byte_seconds_count"] == 4
        assert seen['bridgehead_network_io_bytes_total{network_io_direction="receive"}'] > 100
        assert seen["bridgehead_connections_accepted_total"] == 4
        assert seen['bridgehead_worker_condition{worker="0",condition="serving"}'] == 1


def test_operators_are_answered_while_the_loop_is_blocked(loop: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0")
    with Server("blocking_app:app", "--loop", loop, *ADMIN, "--health-path", "/healthz") as server:
        operators = Operators(server)
        assert operators.ask("/readyz") == (200, "ok\n")
        assert server.ask("/healthz").status == 200
        with server.connect() as client, server.connect() as other:
            client.send(request(f"/block?gates={tmp_path}"))
            operators.until(lambda: operators.ask("/readyz")[0] == 503)
            assert "no sign of life" in operators.ask("/readyz")[1]
            assert operators.ask("/livez") == (200, "ok\n")
            assert operators.samples()['bridgehead_requests{at="application"}'] == 1
            assert other.ask("/healthz").status == 503
            os.close(os.open(tmp_path / "0", os.O_WRONLY))
            assert client.read_response().body == b"at last"
        operators.until(lambda: operators.ask("/readyz") == (200, "ok\n"))
        operators.until(lambda: server.ask("/healthz").status == 200)


def test_operators_are_answered_beside_a_crowd_that_asks_nothing() -> None:
    with Server("framing_app:app", *ADMIN) as server, ExitStack() as crowd:
        operators = Operators(server)
        for _ in range(600):
            crowd.enter_context(socket.create_connection(("127.0.0.1", operators.port), PATIENCE))
        assert operators.ask("/livez") == (200, "ok\n")


def test_operators_are_answered_while_a_call_keeps_pythons_lock(loop: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0")
    with Server("blocking_app:app", "--loop", loop, *ADMIN) as server:
        operators = Operators(server)
        with server.connect(timeout=STARTUP_SECONDS) as client:
            client.send(request(f"/keep-the-lock?gates={tmp_path}"))
            operators.until(lambda: operators.ask("/readyz")[0] == 503)
            assert "no sign of life" in operators.ask("/readyz")[1]
            for _ in range(20):
                assert operators.ask("/livez") == (200, "ok\n")
            os.close(os.open(tmp_path / "0", os.O_WRONLY))
            assert int(client.read_response().body) == server.pid
        operators.until(lambda: operators.ask("/readyz") == (200, "ok\n"))


def test_operators_are_answered_while_more_is_asked_than_can_be_served() -> None:
    options = ("--limit-concurrency", "1", "--limit-queue", "0", "--health-path", "/healthz")
    with Server("wire_app:app", *ADMIN, *options) as server:
        operators = Operators(server)
        with server.connect() as running, server.connect() as refused, server.connect() as probe:
            running.send(request("/until-gone"))
            assert running.read_head()[1] == 200
            for _ in range(20):
                answer = refused.ask("/hello")
                assert (answer.status, answer.header("retry-after")) == (503, "1")
                assert operators.ask("/livez") == (200, "ok\n")
                operators.until(lambda: operators.ask("/readyz") == (200, "ok\n"))
                operators.until(lambda: probe.ask("/healthz").status == 200)
            assert operators.samples()['bridgehead_requests{at="application"}'] == 1


@pytest.mark.parametrize("limit", ["2", "auto"])
def test_a_server_in_whose_queue_no_more_may_wait_is_not_ready_until_there_is_room(limit: str) -> None:
    options = (
        "--limit-concurrency",
        limit,
        "--limit-queue",
        "3",
        "--timeout-queue",
        "60",
        "--health-path",
        "/healthz",
    )
    with Server("wire_app:app", *ADMIN, *options) as server, ExitStack() as all_clients:
        operators = Operators(server)
        runs = int(operators.status()["workers"][0]["limit"])
        clients = [all_clients.enter_context(server.connect()) for _ in range(runs + 3)]
        for client in clients[:runs]:
            client.send(request("/until-gone"))
            assert client.read_head()[1] == 200
        for waits, client in enumerate(clients[runs:]):
            operators.until(lambda waits=waits: operators.samples()[WAITING] == waits)  # type: ignore[misc]
            assert operators.ask("/readyz") == (200, "ok\n")
            assert server.ask("/healthz").status == 200
            client.send(request("/until-gone"))
        operators.until(lambda: operators.samples()[WAITING] == 3)
        assert operators.ask("/readyz") == (503, "worker 0: as many requests wait as may\n")
        assert server.ask("/healthz").status == 503
        clients[0].close()
        operators.until(lambda: operators.ask("/readyz") == (200, "ok\n"))
        assert server.ask("/healthz").status == 200


def test_the_health_path_is_answered_in_http2_while_the_loop_is_blocked(loop: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0")
    options = ("--loop", loop, *ADMIN, "--health-path", "/healthz")
    with Server("blocking_app:app", *options) as server, Http2Client(server.port) as client:
        operators = Operators(server)
        operators.until(lambda: client.ask("/healthz").status == 200)
        assert client.ask("/healthz", method="HEAD").body == b""
        held = client.begin(f"/block?gates={tmp_path}")
        operators.until(lambda: operators.ask("/readyz")[0] == 503)
        answer = client.ask("/healthz")
        assert (answer.status, answer.body) == (503, b"unavailable\n")
        assert answer.header("cache-control") == "no-store"
        os.close(os.open(tmp_path / "0", os.O_WRONLY))
        assert client.answer(held).body == b"at last"
        operators.until(lambda: client.ask("/healthz").status == 200)


def test_a_process_whose_loop_is_blocked_for_too_long_is_not_alive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0")
    with Server("blocking_app:app", *ADMIN, "--timeout-worker-healthcheck", "500ms") as server:
        operators = Operators(server)
        with server.connect() as client:
            client.send(request(f"/block?gates={tmp_path}"))
            operators.until(lambda: operators.ask("/livez")[0] == 503)
            os.close(os.open(tmp_path / "0", os.O_WRONLY))
            client.read_response()


def test_operators_are_answered_while_the_server_drains() -> None:
    with Server("framing_app:app", *ADMIN, "--drain-delay", "20s", "--health-path", "/healthz") as server:
        operators = Operators(server)
        operators.until(lambda: operators.ask("/readyz")[0] == 200)
        os.kill(server.pid, signal.SIGTERM)
        operators.until(lambda: operators.ask("/readyz")[0] == 503)
        assert operators.ask("/readyz")[1] == "worker 0: is about to end\n"
        assert operators.ask("/livez") == (200, "ok\n")
        assert server.ask("/healthz").status == 503
        os.kill(server.pid, signal.SIGTERM)
        server.wait_exit()


def test_what_a_killed_worker_counted_is_kept() -> None:
    with serve(*ADMIN) as server:
        operators = Operators(server)
        wait_all(server)
        first, _ = imported(server)
        for _ in range(20):
            assert server.ask("/").status == 200
        count = f"http_server_request_duration_seconds_count{{{GET}}}"
        operators.until(lambda: operators.samples()[count] == 20)
        os.kill(first, signal.SIGKILL)
        operators.until(lambda: operators.samples()['bridgehead_worker_ends_total{reason="killed"}'] == 1)
        operators.until(lambda: len(operators.status()["workers"]) == 2)
        seen = operators.samples()
        assert (seen[count], seen['bridgehead_worker_starts_total{reason="died"}']) == (20, 1)
        operators.until(lambda: operators.ask("/readyz") == (200, "ok\n"))
        processes = {each["process"] for each in operators.status()["workers"]}
        assert first not in processes
        assert server.pid not in processes


def test_what_is_asked_for_that_is_not_there_is_said() -> None:
    with Server("framing_app:app", *ADMIN) as server:
        operators = Operators(server)
        status, paths = operators.ask("/nothing")
        assert status == 404
        for path in re.findall(r"/[\w.]*", paths):
            assert operators.ask(path)[0] == 200
        assert paths.count("/") == 5
        assert operators.ask("/metrics", "POST")[0] == 405
        _, older = operators.ask("/metrics")
        _, newer = operators.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert newer.endswith("# EOF\n")
        assert "# EOF" not in older
        for refusing in (
            "application/openmetrics-text;q=0",
            "text/plain, application/openmetrics-text;q=0.1",
        ):
            assert "# EOF" not in operators.ask("/metrics", Accept=refusing)[1]
        assert "# TYPE bridgehead_refusals_total counter" in older
        assert server.ask("/metrics").status == 200, "the application's own"


def test_a_unix_socket_serves_operators_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "admin"
    with Server("framing_app:app", "--admin", f"unix:{path}") as server:
        server.wait_line("Operators are answered on ")
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"ok\n")
        server.stop()
    assert not path.exists()


def test_an_address_that_is_taken_ends_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Server("framing_app:app", "--admin", f"127.0.0.1:{port}", ready=False) as server:
            assert server.wait_exit() == 3
            assert "choose another port with --admin" in server.stderr


def test_without_the_options_nothing_is_measured_and_the_path_is_the_applications() -> None:
    with Server("framing_app:app") as server:
        assert server.ask("/healthz").status == 200
        assert "Operators" not in server.stderr


def test_a_process_that_is_succeeded_tells_of_its_successor() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with Server("workers_app:app", "--admin", address) as server:
        operators = Operators(server)
        os.kill(server.pid, signal.SIGHUP)
        server.wait_line("becomes its parent", timeout=STARTUP_SECONDS)

        def serves() -> bool:
            try:
                workers = operators.status()["workers"]
            except OSError:  # between two programs of that process
                return False
            return [each["process"] for each in workers] == [imported(server)[-1]]

        operators.until(serves)
        operators.until(lambda: operators.ask("/readyz") == (200, "ok\n"))


def test_tasks_and_threads_are_counted_before_the_first_request_and_after_the_last() -> None:
    with Server("health_app:app", *ADMIN) as server:
        operators = Operators(server)

        def tasks() -> int:
            counted: int = operators.status()["workers"][0]["loop"]["pending_tasks"]
            return counted

        operators.until(lambda: tasks() > 0)
        server.ask("/leak?count=50&seconds=4")
        operators.until(lambda: tasks() > 50)
        # They end by themselves; nobody asks for anything meanwhile.
        operators.until(lambda: 0 < tasks() < 50)
