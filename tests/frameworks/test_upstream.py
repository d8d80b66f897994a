"""A service whose upstream is slow, wrong and broken: what becomes of those who ask the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness import APPS
from harness.server import LOOPS

from bridgehead.pytest_plugin import Load, MakeCanary, MakeClient, MakeUpstream, ServeApp
from bridgehead.testing import FaultyUpstream, Folder, Outcome, ServerProcess

pytestmark = pytest.mark.runtimes
SIZE = 8192
# Requests of the canary a second: no more than a busy machine can answer, for an upstream is asked for each.
RATE = 10
Serve = Callable[..., tuple[ServerProcess, FaultyUpstream]]


@pytest.fixture
def serve(serve_app: ServeApp, faulty_upstream: MakeUpstream, ledger: Folder, loop: str) -> Serve:
    """The service, with the upstream that it asks."""

    def start(faults: dict[str, Any], **options: Any) -> tuple[ServerProcess, FaultyUpstream]:
        upstream = faulty_upstream(body_size=SIZE, **faults)
        env = {**ledger.env, "UPSTREAM": upstream.url}
        name, runtime = LOOPS[loop]
        server = serve_app("asking_app:app", cwd=APPS, env=env, loop=name, runtime=runtime, **options)
        return server, upstream

    return start


def due(_: int) -> bytes:
    return b"x" * SIZE


def test_each_request_is_answered_once_by_what_became_of_it_above(
    serve: Serve, load: Load, canary: MakeCanary
) -> None:
    rates = {"error_rate": 0.1, "reset_rate": 0.1, "truncate_rate": 0.1}
    server, upstream = serve({"latency": "5ms", "jitter": "20ms", "seed": 3, **rates})
    watching = canary(server, rate=RATE, due=due)
    report = load(server, "/", requests=150, connections=5, timeout=30)
    watching.wait_for(20)
    verdict = watching.check()
    verdict.assert_kept()
    assert set(report.errors_by_kind) == {"status_5xx"}, report.first_errors
    good = report.requests - report.errors + sum(each.status == 200 for each in watching.log)
    assert good == upstream.counts["answers"]
    assert report.requests + verdict.sent == upstream.counts["requests"]


def test_an_upstreams_cut_answer_does_not_look_complete_below(serve: Serve, load: Load) -> None:
    server, upstream = serve({"truncate_rate": 0.3, "seed": 5}, allow=["Traceback"])
    report = load(server, "/stream", requests=100, connections=5, timeout=30)
    assert set(report.errors_by_kind) == {"short_body"}, report.first_errors
    assert report.errors == upstream.counts["truncated"]
    assert report.requests - report.errors == upstream.counts["answers"]


def test_an_upstream_that_hangs_costs_a_504(serve: Serve, load: Load) -> None:
    server, upstream = serve({"hang_rate": 1}, timeout_request=0.5)
    report = load(server, "/", requests=20, connections=10, timeout=30)
    assert report.statuses == {"504": 20}
    upstream.change(hang_rate=0)
    # One that takes too long on a busy machine is asked for again.
    while (answer := server.client.get("/")).status_code == 504:
        pass
    assert (answer.status_code, answer.content) == (200, b"x" * SIZE)


def test_a_stop_waits_for_the_upstream_and_for_nobody_who_has_left(
    serve: Serve, canary: MakeCanary, resetting_client: MakeClient
) -> None:
    server, upstream = serve({"latency": "200ms"})
    watching = canary(server, rate=RATE, due=due)
    watching.wait_for(10)
    for _ in range(10):
        resetting_client(server, "/").reset()
    upstream.change(latency="500ms")
    watching.wait_for(10)
    server.stop()
    verdict = watching.check()
    verdict.assert_kept()
    assert verdict.outcomes[Outcome.ANSWERED] >= 20
    assert verdict.unended == ()
