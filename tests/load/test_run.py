"""Load on a real server, from Python: what is counted, and what a run can be told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from harness import APPS

from bridgehead.errors import StartError
from bridgehead.load import LoadOptions, Report, Running, Scenario, Upload, load, plan_of
from bridgehead.load.keywords import LoadKeywords
from bridgehead.load.remarks import remarks
from bridgehead.testing import Served, running


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with running("wire_app:app", cwd=APPS) as server:
        yield server


def test_a_run_of_some_requests_is_reported(server: Served) -> None:
    report = load(f"{server.url}/scope", requests=200, connections=4, threads=2)
    assert (report.requests, report.errors, report.errors_by_kind) == (200, 0, {})
    assert report.statuses == {"200": 200}
    assert 0 < report.latency.min <= report.p50 <= report.p90 <= report.p99 <= report.latency.max
    assert report.rps > 0
    assert report.bytes > 200
    assert sum(row.answers for row in report.timeline) == 200
    assert report.settings["connections"] == 4
    assert not report.interrupted


def test_a_report_survives_json(server: Served) -> None:
    report = load(f"{server.url}/scope", requests=20, connections=2)
    assert Report.from_json(report.to_json()) == report


def test_a_report_of_before_dropped_requests_were_counted_is_read(server: Served) -> None:
    report = load(f"{server.url}/scope", requests=1, connections=1)
    values = {name: value for name, value in report.to_json().items() if name != "dropped"}
    assert Report.from_json(values) == report


def test_what_the_warm_up_has_left_behind_is_told(server: Served) -> None:
    report = replace(load(f"{server.url}/scope", requests=1, connections=1), dropped=1234)
    assert any(each.startswith("1,234 requests of the warm-up still waited") for each in remarks(report))


def test_several_kinds_of_requests_are_told_apart(server: Served) -> None:
    scenarios = [
        Scenario(name="read", path="/scope?n={n}", weight=3),
        Scenario(name="fail", path="/status?status=500"),
        Scenario(name="upload", path="/echo", method="POST", upload=Upload(size=100_000, chunk=7_000)),
    ]
    report = load(server.url, scenarios=scenarios, requests=100, connections=3)
    read, fail, upload = report.scenarios
    assert [portion.name for portion in report.scenarios] == ["read", "fail", "upload"]
    assert read.requests + fail.requests + upload.requests == 100
    assert read.errors == upload.errors == 0
    assert fail.errors_by_kind == {"status_5xx": fail.requests} == report.errors_by_kind
    assert report.bytes >= upload.requests * 100_000


def test_kinds_without_a_name_have_their_method_and_path(server: Served) -> None:
    scenarios = [Scenario(path="/scope"), Scenario(path="/echo", method="POST")]
    report = load(server.url, scenarios=scenarios, requests=10, connections=1)
    assert [portion.name for portion in report.scenarios] == ["GET /scope", "POST /echo"]


def test_a_status_is_called_no_error_only_where_it_is_none(server: Served) -> None:
    url = f"{server.url}/status?status=404"
    plain = load(url, requests=3, connections=1)
    judged = load(url, requests=3, connections=1, expect_status=[200])
    assert (plain.errors, judged.errors) == (0, 3)
    assert any("no error here" in each for each in remarks(plain))
    assert not any("no error here" in each for each in remarks(judged))


def test_a_unix_socket_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with running("wire_app:app", cwd=APPS, uds=str(path)):
        for url, uds in ((f"unix:{path}", None), ("http://there/scope", str(path))):
            report = load(url, uds=uds, requests=10, connections=1)
            assert (report.requests, report.errors) == (10, 0)


def test_a_run_can_be_looked_at_and_stopped_from_another_thread(server: Served) -> None:
    plan = plan_of(LoadOptions(url=f"{server.url}/scope", duration=60, connections=2))
    with Running(plan) as run:
        while run.progress().requests < 10:
            assert not run.wait(0.01)
        threading.Thread(target=run.stop).start()
        assert run.wait(30)
        report = run.report()
    assert report.interrupted
    assert report.seconds < 60
    assert run.report() is report


def test_leaving_a_run_by_an_error_ends_it(server: Served) -> None:
    plan = plan_of(LoadOptions(url=f"{server.url}/scope", duration=60, connections=2))
    with pytest.raises(ZeroDivisionError), Running(plan) as run:
        raise ZeroDivisionError
    assert run.report().interrupted


def test_an_option_that_there_is_not_is_refused_before_it_is_run_too() -> None:
    # Who checks types sees it: mypy would call an `ignore` that has no use an error.
    with pytest.raises(TypeError, match="conections"):
        load("http://127.0.0.1:1/", conections=4)  # type: ignore[call-arg]


def test_type_checkers_know_each_option_once() -> None:
    assert set(LoadKeywords.__annotations__) == {each.name for each in fields(LoadOptions)} - {
        "url",
        "scenarios",
    }


def test_a_wrong_answer_is_an_error(server: Served) -> None:
    report = load(f"{server.url}/scope", requests=5, connections=1, expect_body="POST")
    assert report.errors_by_kind == {"assertion": 5}
    assert report.first_errors == {"assertion": 'body without "POST"'}
    assert load(f"{server.url}/scope", requests=5, connections=1, expect_status=[201]).errors == 5
    assert load(f"{server.url}/nowhere", requests=5, connections=1).errors == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no URL was given"),
        ({"url": "localhost:8000"}, "'localhost:8000' is not a URL that load can be put on"),
        ({"url": "http://"}, "names no host"),
        ({"url": "http://a:0/"}, "has no port from 1"),
        ({"url": "http://a/#b"}, "#fragment"),
        ({"url": "http://a@b/"}, "password"),
        ({"url": "unix:"}, "names no socket"),
        ({"url": "unix:/a", "uds": "/b"}, "two sockets"),
        ({"url": "http://a/", "threads": 3, "connections": 2}, "3 threads for 2 connections"),
        ({"url": "http://a/", "rate": 0}, "not a number of requests a second"),
        ({"url": "http://a/", "duration": 0}, "not above 0"),
        ({"url": "http://a/", "body": "a", "body_file": "b"}, "two bodies"),
        ({"url": "http://a/", "body_file": "/nowhere/b"}, "/nowhere/b cannot be read: no such file"),
        ({"url": "http://a/", "method": "PUT", "scenarios": "x.toml"}, "both say what to ask for"),
        ({"url": "http://127.0.0.1/{no}"}, "{no} is no template"),
        ({"url": "http://127.0.0.1/a\nb"}, "a blank or a control character"),
        ({"url": "http://127.0.0.1/ö"}, "has to be written as %XX"),
        ({"url": "http://127.0.0.1/", "headers": [("a b", "c")]}, "is not the name of a header"),
        ({"url": "http://127.0.0.1:1/"}, "nobody answers at 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_run_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(StartError) as refused:
        load(**options)  # type: ignore[arg-type]
    assert message in refused.value.message


def test_a_port_that_is_left_out_is_80() -> None:
    assert plan_of(LoadOptions(url="http://[::1]/a?b=c")).port == 80
    plan = plan_of(LoadOptions(url="http://[::1]:81/a?b=c"))
    assert (plan.host, plan.port, plan.authority) == ("::1", 81, "[::1]:81")
    assert plan.scenarios[0].path == "/a?b=c"
