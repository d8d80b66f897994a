"""`bridgehead load`: words in, reports out."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness import APPS

from bridgehead.load.report import read_report
from bridgehead.testing import Served, running


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with running("wire_app:app", cwd=APPS) as server:
        yield server


def bridgehead(
    *words: str, cwd: Path | None = None, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bridgehead", *words]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **(environ or {})}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=50
    )


def load(*words: str) -> str:
    done = bridgehead("load", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_report_is_printed(server: Served) -> None:
    text = load(f"{server.url}/scope", "--requests", "100", "--connections", "3")
    assert f"{server.url}/scope: 3 connections, each request follows the last answer" in text
    assert re.search(r"^  requests  100 in ", text, re.M)
    assert "  errors    none\n" in text
    assert "  statuses  200: 100\n" in text
    assert re.search(r"^  latency   p50 [\d.]+ [µm]?s  p75 ", text, re.M)
    assert text.count("█") > 10


def test_a_terminal_without_utf_8_gets_ascii(server: Served) -> None:
    words = ("load", f"{server.url}/scope", "--requests", "50", "--connections", "1")
    done = bridgehead(*words, environ={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "####" in done.stdout


def test_json_on_stdout_stands_alone(server: Served) -> None:
    words = ("load", f"{server.url}/scope", "--requests", "50", "--connections", "2", "--json", "-")
    done = bridgehead(*words)
    report = json.loads(done.stdout)
    assert (report["requests"], report["errors"]) == (50, 0)
    assert report["rps"] > 0
    assert {"p50", "p90", "p99", "p999", "max"} <= report["latency"].keys()
    assert "  requests  50 in " in done.stderr


def test_files_hold_the_report(server: Served, tmp_path: Path) -> None:
    names = {name: str(tmp_path / f"report.{name}") for name in ("json", "csv", "html")}
    flags = [word for name, path in names.items() for word in (f"--{name}", path)]
    load(f"{server.url}/scope", "--rate", "40", "--requests", "60", *flags)
    report = read_report(Path(names["json"]))
    assert report.requests == 60
    rows = list(csv.DictReader(Path(names["csv"]).read_text().splitlines()))
    assert sum(int(row["answers"]) for row in rows) == 60
    assert [float(row["p99"] or 0) for row in rows] == [row.p99 for row in report.timeline]
    page = Path(names["html"]).read_text()
    assert page.count("<svg") == 3  # no errors to draw
    assert "polyline" in page


def test_the_page_is_complete_in_itself_and_escapes_what_came_from_outside(
    server: Served, tmp_path: Path
) -> None:
    file, table = tmp_path / "report.html", tmp_path / "report.csv"
    words = ("--requests", "20", "--expect-body", "<script>", "--connections", "1", "--html", str(file))
    load(f"{server.url}/scope?x='&y=1", *words, "--csv", str(table))
    page = file.read_text()
    assert "no answer to measure" in page
    assert "0.00 µs" not in page
    assert {row["p99"] for row in csv.DictReader(table.read_text().splitlines())} == {""}
    assert "<script" not in page
    assert "body without &quot;&lt;script&gt;&quot;" in page
    assert "/scope?x=&#x27;&amp;y=1" in page
    assert not re.search(r"""(?:src|href)=|url\(|@import""", page)
    assert page.count("<svg") == 2  # of errors and of answers, which are none; there is no latency
    for picture in re.findall(r"<svg.*?</svg>", page, re.S):
        ElementTree.fromstring(picture)
    assert "not as expected" in page


def test_an_interrupt_ends_it_early_with_the_report(server: Served) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        command = [sys.executable, "-m", "bridgehead", "load", f"{server.url}/scope", "--duration", "50s"]
        with subprocess.Popen(
            [*command, "--progress", "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            # The first sign of progress.
            assert process.stderr.read(1)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=30)
        assert process.returncode == 0, stderr
        report = json.loads(stdout)
        assert report["interrupted"]
        assert report["seconds"] < 50
        assert b"It was stopped after" in stderr


def test_two_reports_are_compared(server: Served, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    load(f"{server.url}/scope", "--requests", "100", "--json", str(file))
    values = json.loads(file.read_text())
    row = {**values["timeline"][0], "seconds": 1.0, "errors": 0, "bytes": 0, "p90": 0.003, "max": 0.005}
    reports = []
    for name, rps, p50, p99 in (("before", 100, 0.002, 0.004), ("after", 150, 0.002, 0.002)):
        rows = [
            {**row, "at": float(at), "answers": rps + at % 3, "p50": p50 + at % 4 * 1e-4, "p99": p99}
            for at in range(20)
        ]
        (tmp_path / name).write_text(json.dumps({**values, "timeline": rows}))
        reports.append(str(tmp_path / name))
    text = load("--compare", *reports)
    assert re.search(r"^rps +101 +151 +\+49\.\d %   \+4\d\.\d % to \+\d\d\.\d %$", text, re.M), text
    assert re.search(r"^p50 .*no difference shown$", text, re.M)
    assert re.search(r"^p99 .* -50\.0 %", text, re.M)
    assert "bootstrap" in text
    assert "not made alike" not in text


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (["load"], "bridgehead load needs a URL", "http://host:port/path"),
        (["load", "http://127.0.0.1:1/"], "nobody answers at 127.0.0.1:1", "start the server first"),
        (["load", "http://a/", "--duraton", "1s"], "there is no option '--duraton'", "`--duration`"),
        (["load", "http://a/", "--duration", "1x"], "--duration: '1x' is not a number of seconds", "500ms"),
        (["load", "http://a/", "http://b/"], "unexpected argument 'http://b/'", "one URL is enough"),
        (["load", "http://a/", "--json", "/nowhere/a"], "/nowhere/a cannot be written", "a folder that is"),
        (["load", "http://a/", "--json", "-", "--csv", "-"], "two reports go to stdout", "its own file"),
        (["load", "--compare", "a.json", "b.json"], "a.json cannot be read: no such file", "--json"),
        (["load", "http://a/", "--compare", "a", "b"], "reads two reports and runs nothing", "leave it out"),
        (["load", "http://a/", "--scenarios", "s.toml"], "s.toml cannot be read: no such file", ""),
    ],
)
def test_what_cannot_begin_ends_with_3_and_the_next_step(
    tmp_path: Path, words: Sequence[str], error: str, hint: str
) -> None:
    done = bridgehead(*words, cwd=tmp_path)
    assert done.returncode == 3
    assert error in done.stderr
    assert hint in done.stderr
    assert not done.stdout


def test_what_is_no_report_is_not_compared(tmp_path: Path) -> None:
    for name, text in (("a", "{}"), ("b", "[1]"), ("c", "no")):
        (tmp_path / name).write_text(text)
        done = bridgehead("load", "--compare", name, name, cwd=tmp_path)
        assert f"{name} is not a report" in done.stderr


def test_few_seconds_are_not_compared(server: Served, tmp_path: Path) -> None:
    load(f"{server.url}/scope", "--requests", "10", "--json", str(tmp_path / "a"))
    done = bridgehead("load", "--compare", "a", "a", cwd=tmp_path)
    assert done.returncode == 3
    assert "5 are needed" in done.stderr


def test_a_module_called_load_can_still_be_served(tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text("async def app(scope, receive, send): ...\n")
    for words in (["load:app"], ["./load.py"], ["--check", "load"]):
        done = bridgehead(*dict.fromkeys([*words, "--check"]), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    asked = bridgehead("load", cwd=tmp_path)
    assert asked.returncode == 3
    assert "to serve the module `load`: `serve load`" in asked.stderr
    served = [sys.executable, "-c", "from bridgehead.cli import main; main()", "load", "--check"]
    assert subprocess.run(served, cwd=tmp_path, capture_output=True, timeout=30).returncode == 0
