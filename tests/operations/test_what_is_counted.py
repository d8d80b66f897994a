"""What a request is counted as: whose error it is, by what it came, and what is no request at all."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from harness import UVICORN, Server, request
from harness.http2 import Http2Client
from operators import PATIENCE, Operators

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

ADMIN = ("--admin", "127.0.0.1:0", "--no-access-log")
APPLICATION = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/raise":
        raise RuntimeError("on purpose")
    while scope["path"] == "/stay":
        if (await receive())["type"] == "http.disconnect":
            return
    status = 503 if scope["path"] == "/busy" else 200
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b"said"})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APPLICATION)
    return tmp_path


def counted(operators: Operators) -> dict[str, float]:
    """Requests by their labels, of which there is one at least."""
    name = "http_server_request_duration_seconds_count"
    return {each.removeprefix(name): value for each, value in operators.samples().items() if name in each}


def labels(
    status: int, error: str, *, method: str = "GET", version: str = "1.1", scheme: str = "http"
) -> str:
    said = (
        f'http_request_method="{method}",http_response_status_code="{status}",'
        f'network_protocol_version="{version}",url_scheme="{scheme}"'
    )
    return f"{{{said},error_type={error!r}}}".replace("'", '"') if error else f"{{{said}}}"


def test_an_error_says_whose_it_is_and_only_who_was_turned_away_is_left_out_of_the_latency(
    loop: str, folder: Path
) -> None:
    options = ("--limit-concurrency", "1", "--limit-queue", "0", "--loop", loop)
    with Server("shop:app", *ADMIN, *options, cwd=folder, allow=["Traceback"]) as server:
        operators = Operators(server)

        def is_idle() -> bool:
            return operators.samples()['bridgehead_requests{at="application"}'] == 0

        for target, status in [("/", 200), ("/busy", 503), ("/raise", 500)]:
            assert server.ask(target).status == status
            operators.until(is_idle)
        with server.connect() as held, Http2Client(server.port) as other:
            held.send(request("/stay"))
            operators.until(lambda: not is_idle())
            for _ in range(5):
                assert server.ask("/").status == 503
            assert other.ask("/").status == 503
            due = {
                labels(200, ""): 1,
                labels(503, "503"): 1,
                labels(500, "application_failed"): 1,
                labels(503, "queue_full"): 5,
                labels(503, "queue_full", version="2"): 1,
            }
            operators.until(lambda: counted(operators) == due)
            total = operators.status()["total"]
            assert (total["duration"]["count"], total["first_byte"]["count"]) == (3, 3)
            told = {(each["status"], each["error"], each["count"]) for each in total["requests"]}
            assert {(200, None, 1), (503, "503", 1), (503, "queue_full", 5)} < told


def test_requests_are_told_apart_by_the_scheme_by_which_they_came_also_while_they_are_here(
    folder: Path,
) -> None:
    with Server("shop:app", *ADMIN, cwd=folder) as server:
        operators = Operators(server)
        active = "http_server_active_requests"

        def here() -> dict[str, float]:
            return {each.removeprefix(active): n for each, n in operators.samples().items() if active in each}

        get = '{http_request_method="GET",url_scheme="http"}'
        put = '{http_request_method="PUT",url_scheme="https"}'
        assert here() == {get: 0}
        secure = [("X-Forwarded-Proto", "https")]
        with server.connect() as client:
            client.send(request("/stay", method="PUT", headers=secure))
            operators.until(lambda: here() == {get: 0, put: 1})
            assert operators.status()["total"]["active"] == 1
        operators.until(lambda: here() == {get: 0, put: 0})
        assert counted(operators) == {labels(499, "", method="PUT", scheme="https"): 1}


def test_a_probe_of_the_health_path_is_counted_by_itself_and_measured_as_nobodys_request(
    folder: Path,
) -> None:
    options = ("--health-path", "/healthz", "--drain-delay", "60s")
    with Server("shop:app", *ADMIN, *options, cwd=folder) as server, Http2Client(server.port) as other:
        operators = Operators(server)
        probes = 'bridgehead_health_probes_total{http_response_status_code="%d"}'
        assert operators.samples()[probes % 200] == 0
        assert server.ask("/healthz").status == server.ask("/healthz", "HEAD").status == 200
        assert other.ask("/healthz").status == 200
        os.kill(server.pid, signal.SIGTERM)
        operators.until(lambda: operators.ask("/readyz")[0] == 503)
        assert server.ask("/healthz", timeout=PATIENCE).status == 503
        seen = operators.samples()
        assert (seen[probes % 200], seen[probes % 503]) == (3, 1)
        # Another request at that path, as any other method is, is the application's.
        assert server.ask("/healthz", "POST").status == 200
        operators.until(lambda: counted(operators) == {labels(200, "", method="POST"): 1})
        operators.until(lambda: operators.status()["total"]["active"] == 0)
        status = operators.status()
        assert status["total"]["first_byte"]["count"] == 1
        assert [each["method"] for each in status["slowest"]] == ["POST"]
        assert status["total"]["health_probes"] == {"welcomed": 3, "turned_away": 1}
        assert status["total"]["http2"] == 1
        os.kill(server.pid, signal.SIGTERM)
        server.wait_exit()
