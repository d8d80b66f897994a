"""The faulty upstream, and clients that misbehave: each does what it says."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import fields
from typing import Any

import httpx
import pytest
from harness import APPS

from bridgehead.errors import StartError
from bridgehead.load import Report, load
from bridgehead.pytest_plugin import Load, MakeCanary, MakeClient, MakeUpstream, ServeApp
from bridgehead.testing import (
    Canary,
    Faults,
    Served,
    half_closing_client,
    never_reading_client,
    resetting_client,
    running,
    slow_client,
)
from bridgehead.testing.canary import CanaryKeywords
from bridgehead.testing.clients import ClientKeywords
from bridgehead.testing.faults import FaultKeywords

BODY = 4_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with running("wire_app:app", cwd=APPS) as server:
        yield server


# --- the upstream


def test_without_faults_it_answers_everything_alike(faulty_upstream: MakeUpstream) -> None:
    upstream = faulty_upstream(body_size="1k")
    for method in ("GET", "POST", "DELETE"):
        answer = httpx.request(method, f"{upstream.url}/any/path", content=b"some")
        assert (answer.status_code, answer.content) == (200, b"x" * 1024)
    assert upstream.counts == {
        "requests": 3,
        "answers": 3,
        "errors": 0,
        "resets": 0,
        "truncated": 0,
        "hung": 0,
    }


def test_latency_is_the_least_and_jitter_comes_on_top(faulty_upstream: MakeUpstream) -> None:
    report = load(faulty_upstream(latency="20ms", jitter="30ms").url, requests=100, connections=20)
    assert report.latency.min >= 0.02
    assert report.latency.max - report.latency.min > 0.005


@pytest.mark.parametrize(
    ("rate", "kind", "counted"),
    [
        ("error_rate", "status_5xx", "errors"),
        ("reset_rate", "reset", "resets"),
        ("truncate_rate", "short_body", "truncated"),
        ("hang_rate", "timeout", "hung"),
    ],
)
def test_each_rate_is_the_share_of_its_fault(
    faulty_upstream: MakeUpstream, rate: str, kind: str, counted: str
) -> None:
    share: dict[str, Any] = {rate: 0.5}
    upstream = faulty_upstream(**share, body_size=1000, seed=7)
    report = load(upstream.url, requests=60, connections=15, timeout=0.3)
    assert set(report.errors_by_kind) == {kind}, report.first_errors
    assert 15 <= report.errors <= 45
    assert upstream.counts[counted] == report.errors


def test_the_same_seed_meets_the_same_requests_with_the_same_faults(faulty_upstream: MakeUpstream) -> None:
    def met(seed: int) -> list[int]:
        upstream = faulty_upstream(error_rate=0.5, seed=seed)
        with httpx.Client() as client:
            return [client.get(upstream.url).status_code for _ in range(40)]

    assert met(1) == met(1) != met(2)


def test_faults_change_while_it_runs(faulty_upstream: MakeUpstream) -> None:
    upstream = faulty_upstream(body_size=3)
    assert httpx.get(upstream.url).status_code == 200
    upstream.change(error_rate=1, error_status=429)
    answer = httpx.get(upstream.url)
    assert (answer.status_code, answer.content) == (429, b"xxx")
    upstream.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(upstream.url)
    with pytest.raises(RuntimeError, match="closed"):
        upstream.change(error_rate=0)


@pytest.mark.parametrize(
    "faults",
    [
        {"error_rate": 1.1},
        {"reset_rate": 0.6, "hang_rate": 0.6},
        {"error_rate": -1},
        {"reset_rate": math.nan},
    ],
)
def test_rates_that_are_no_shares_are_refused(faults: dict[str, Any], faulty_upstream: MakeUpstream) -> None:
    with pytest.raises(ValueError, match="shares"):
        faulty_upstream(**faults)


# --- clients


def test_a_slow_client_is_answered(server: Served, slow_client: MakeClient) -> None:
    began = time.monotonic()
    client = slow_client(server, "/echo", method="POST", body=b"slowly", pause=0.002)
    answer = client.answer()
    assert (answer.status, answer.body) == (200, b"slowly")
    assert time.monotonic() - began > 0.1


def test_the_answer_to_head_has_no_body(server: Served, slow_client: MakeClient) -> None:
    answer = slow_client(server, "/hello", method="HEAD", pause=0.0001).answer()
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "5")


def test_a_slow_client_can_leave_early(server: Served, slow_client: MakeClient) -> None:
    slow_client(server, "/hello", pause=60).close()
    assert server.client.get("/hello").text == "hello"


def test_a_half_closing_client_still_reads(server: Served, half_closing_client: MakeClient) -> None:
    answer = half_closing_client(server, "/echo", method="POST", body=b"that is all").answer()
    assert answer.body == b"that is all"


def test_a_resetting_client_hurts_nobody(server: Served, resetting_client: MakeClient) -> None:
    for after in (1, 30, None):
        resetting_client(server, "/echo", method="POST", body=b"x" * 100, after=after).reset()
    assert server.client.get("/hello").text == "hello"


def test_a_never_reading_client_takes_little(never_reading_client: MakeClient) -> None:
    sent: list[int] = []

    async def endless(scope: Any, _: object, send: Callable[..., Awaitable[None]]) -> None:
        if scope["type"] != "http":
            raise RuntimeError
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(BODY // 1000):
            await send({"type": "http.response.body", "body": b"x" * 1000, "more_body": True})
            sent.append(1000)

    with running(endless, timeout_graceful_shutdown=1) as server:
        client = never_reading_client(server)
        assert client.socket.recv(1) == b"H"
        client.close()
    assert sum(sent) < BODY


# --- the promise of a report


def report_of(server: Served, requests: int) -> Report:
    return load(f"{server.url}/hello", connections=1, requests=requests)


def test_a_promise_that_is_kept_says_nothing(server: Served) -> None:
    report_of(server, requests=20).assert_slo(p99="10s", p50="10000000us", max=10, errors=0, rps=1)


def test_a_promise_names_all_that_is_broken(server: Served) -> None:
    report = load(f"{server.url}/status?status=500", connections=1, requests=20)
    with pytest.raises(AssertionError) as told:
        report.assert_slo(p99="50ms")
    assert "no request was answered without an error" in str(told.value)
    assert "20 errors of 20 requests, and 0 may be (status_5xx: 20)" in str(told.value)
    with pytest.raises(AssertionError, match=r"p50 is .* and 1\.00 µs is due"):
        report_of(server, requests=5).assert_slo(p50="1 µs")


def test_errors_may_be_a_number_or_a_share(faulty_upstream: MakeUpstream) -> None:
    report = load(faulty_upstream(error_rate=0.1, seed=1).url, requests=100, connections=1)
    report.assert_slo(errors=report.errors)
    report.assert_slo(errors="50%")
    with pytest.raises(AssertionError, match=r"errors of 100 requests, and 0\.1% may be"):
        report.assert_slo(errors="0.1%")
    for wrong in ("x%", "nan%", "-1%", "3"):
        with pytest.raises(StartError, match="is not a number of errors"):
            report.assert_slo(errors=wrong)


def test_a_rate_that_was_not_kept_breaks_the_promise(faulty_upstream: MakeUpstream) -> None:
    report = load(faulty_upstream(latency="100ms").url, rate=200, connections=1, duration=1)
    with pytest.raises(AssertionError, match="were due and never sent"):
        report.assert_slo(p50="10s")


def test_a_percentile_that_no_report_has_is_a_type_error(server: Served) -> None:
    with pytest.raises(TypeError, match="no 'p42'"):
        report_of(server, requests=5).assert_slo(p42=1)  # type: ignore[call-arg]


# --- what type checkers see; mypy would call an `ignore` that has no use an error


def test_a_mistyped_option_of_a_fixture_is_a_type_error(
    serve_app: ServeApp,
    load: Load,
    faulty_upstream: MakeUpstream,
    canary: MakeCanary,
    slow_client: MakeClient,
) -> None:
    upstream = faulty_upstream(latency="1ms")
    with pytest.raises(TypeError, match="latencey"):
        faulty_upstream(latencey=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="latencey"):
        upstream.change(latencey=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="conections"):
        load(upstream, conections=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="patients"):
        canary(upstream, patients=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="peace"):
        slow_client(upstream, peace=1)  # type: ignore[call-arg]
    # Of a server's options types are not checked, for they would be written twice.
    with pytest.raises(TypeError, match="root_pth"):
        serve_app("wire_app:app", cwd=APPS, root_pth="/api")


def test_type_checkers_know_the_options_that_there_are() -> None:
    assert set(FaultKeywords.__annotations__) == {each.name for each in fields(Faults)}
    assert set(CanaryKeywords.__annotations__) == _named(Canary)
    ours: tuple[Callable[..., object], ...] = (
        slow_client,
        resetting_client,
        half_closing_client,
        never_reading_client,
    )
    assert set(ClientKeywords.__annotations__) == set().union(*map(_named, ours))


def _named(call: Callable[..., object]) -> set[str]:
    """What it takes by name alone."""
    parameters = inspect.signature(call).parameters.values()
    return {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
