"""`bridgehead load`: words in, reports out."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness import APPS

from bridgehead.load.page import as_page
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


@pytest.fixture(scope="module")
def report_of(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """The file of a report of as many seconds as `answers` has, otherwise alike."""
    folder = tmp_path_factory.mktemp("reports")
    load(f"{server.url}/scope", "--requests", "100", "--json", str(folder / "one"))
    values = json.loads((folder / "one").read_text())
    row = {**values["timeline"][0], "seconds": 1.0, "bytes": 0, "p90": 0.003, "max": 0.005}
    numbers = itertools.count()

    def write(answers: Sequence[int], *, errors: int = 0, p50: float = 0.002, p99: float = 0.004) -> str:
        silent = {"p50": 0.0, "p90": 0.0, "p99": 0.0, "max": 0.0}
        rows = [
            {**row, "at": float(at), "answers": count, "errors": errors}
            | ({"p50": p50 + at % 4 * 1e-4, "p99": p99} if count else silent)
            for at, count in enumerate(answers)
        ]
        file = folder / str(next(numbers))
        whole = {"requests": sum(answers) + errors * len(answers), "errors": errors * len(answers)}
        file.write_text(json.dumps({**values, **whole, "timeline": rows}))
        return str(file)

    return write


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


def test_the_page_leaves_a_gap_in_latencies_where_no_answer_came(
    report_of: Callable[..., str],
) -> None:
    page = as_page(read_report(Path(report_of([9, 9, 0, 0, 9, 0, 9, 9, 0]))))
    over_time, _, answers = re.findall(r"<svg.*?</svg>", page, re.S)
    found = re.findall(r'<polyline class="plot one" points="(.*?)"', over_time)
    # 70 to 730 are the seconds 0 to 8; one second alone is a short line.
    places = [[float(place.partition(",")[0]) for place in line.split()] for line in found]
    assert places == [[70.0, 152.5], [397.0, 403.0], [565.0, 647.5]]
    [line] = re.findall(r'<polyline class="plot one" points="(.*?)"', answers)
    assert len(line.split()) == 9


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


@pytest.mark.parametrize(
    ("flags", "due"),
    [
        (["--duration", "50s"], r"\d+\.\d s of 50\S* s  [\d,]+ requests  "),
        (["--requests", "1000000000"], r"\d+\.\d s  [\d,]+ of 1,000,000,000 requests  "),
    ],
)
def test_progress_tells_of_the_requests_from_the_first(server: Served, flags: list[str], due: str) -> None:
    command = [sys.executable, "-m", "bridgehead", "load", f"{server.url}/scope", *flags, "--progress"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        line = b""
        while not line.endswith(b" errors"):
            line += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert re.match(r"\r\x1b\[K" + due, line.decode()), line


def test_an_interrupt_in_the_warm_up_is_told_as_nothing_measured(server: Served) -> None:
    command = [
        sys.executable,
        "-m",
        "bridgehead",
        "load",
        f"{server.url}/scope",
        "--warmup",
        "50s",
        "--progress",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 0, stderr
    _, *told = stdout.splitlines()
    assert told == ["", "  ! It was stopped in the warm-up: nothing was measured yet."]


def test_connections_above_the_soft_limit_of_open_files_are_made(server: Served) -> None:
    words = ["-m", "bridgehead", "load", f"{server.url}/scope", "--connections", "100", "--requests", "300"]
    command = ["/bin/sh", "-c", 'ulimit -S -n 64 && exec "$@"', "sh", sys.executable, *words, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["requests"], report["errors"]) == (300, 0), report["first_errors"]


def test_two_reports_are_compared(report_of: Callable[..., str]) -> None:
    before = report_of([100 + at % 3 for at in range(20)])
    text = load("--compare", before, report_of([150 + at % 3 for at in range(20)], p99=0.002))
    assert re.search(r"^rps +101 +151 +\+49\.\d %   \+4\d\.\d % to \+\d\d\.\d %$", text, re.M), text
    assert re.search(r"^p50 .*no difference shown$", text, re.M)
    assert re.search(r"^p99 .* -50\.0 %", text, re.M)
    assert re.search(r"^errors +0\.0 % +0\.0 % .*no difference shown$", text, re.M), text
    assert "\nseconds without a good answer: 0 of 20 / 0 of 20\n" in text
    assert "change   99.2 % interval\n" in text
    assert "!" not in text


def test_a_server_that_stalls_is_not_shown_as_faster(report_of: Callable[..., str]) -> None:
    before = report_of([100] * 20)
    for silent, rps in ((1, "96.9"), (4, "81.6"), (10, "51.0")):
        answers = [102] * (20 - silent)
        text = load("--compare", before, report_of([*answers[:8], *[0] * silent, *answers[8:]]))
        assert f"\nseconds without a good answer: 0 of 20 / {silent} of 20\n" in text
        [rate] = re.findall(r"^rps .*$", text, re.M)
        assert f" {rps} " in rate
        assert f"! B has no good answer in {silent} of its 20 seconds: 0 in its rps" in text
        assert "no difference shown" not in text
        percentiles = re.findall(r"^(?:p50|p90|p99|max) .*$", text, re.M)
        assert len(percentiles) == 4
        assert all(each.endswith("not told apart in seconds with answers") for each in percentiles)
    assert re.search(r"-49\.0 %   -\d\d\.\d % to -\d\d?\.\d %$", rate), rate


def test_a_server_that_answers_in_few_seconds_has_rates_and_no_latencies(
    report_of: Callable[..., str],
) -> None:
    before, after = report_of([100] * 20), report_of([0] * 18 + [5, 5])
    text = load("--compare", before, after)
    assert not re.search(r"^(?:p50|p90|p99|max) ", text, re.M)
    assert re.search(r"^rps +100 +0\.50 +-99\.5 % ", text, re.M), text
    assert "! Latencies are not compared: B has answers in 2 of them, and 5 are needed." in text
    dead = report_of([0] * 20)
    assert re.search(r"^rps +0\.00 +100 +\+inf % ", load("--compare", dead, before), re.M)


def test_errors_have_an_interval_as_well(report_of: Callable[..., str]) -> None:
    before, after = report_of([100] * 20), report_of([96 + at % 3 for at in range(20)], errors=3)
    text = load("--compare", before, after)
    assert re.search(
        r"^errors +0\.0 % +3\.0 % +\+3\.0   \+[23]\.\d to \+3\.\d of 100 requests$", text, re.M
    ), text


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
    assert "report A has no full second, and 5 are needed" in done.stderr


def test_it_is_said_how_many_seconds_are_too_few(report_of: Callable[..., str]) -> None:
    for count, told in ((1, "report B has 1 full second, and"), (4, "report B has 4 full seconds, and")):
        done = bridgehead("load", "--compare", report_of([9] * 5), report_of([9] * count))
        assert done.returncode == 3
        assert told in done.stderr


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


@pytest.mark.parametrize(
    ("words", "is_alike"),
    [
        (["--body", "abc", "--header", "X-A: 1"], True),
        (["--body", "abd", "--header", "X-A: 1"], False),
        (["--body", "abc"], False),
        (["--header", "X-A: 1"], False),
        (["--body", "abc", "--header", "X-A: 2"], True),
        (["--body", "abc", "--header", "X-A: 1", "--method", "PUT"], False),
    ],
)
def test_runs_that_asked_for_something_else_are_not_alike(
    words: list[str], is_alike: bool, server: Served, report_of: Callable[..., str], tmp_path: Path
) -> None:
    files = []
    for name, asked in (("a", ["--body", "abc", "--header", "X-A: 1"]), ("b", words)):
        load(f"{server.url}/scope", "--requests", "5", *asked, "--json", str(tmp_path / name))
        settings = json.loads((tmp_path / name).read_text())["settings"]
        values = json.loads(Path(report_of([100] * 10)).read_text())
        values["settings"]["asked"] = settings["asked"]
        (tmp_path / name).write_text(json.dumps(values))
        files.append(str(tmp_path / name))
    assert ("! The runs were not made alike" in load("--compare", *files)) == (not is_alike)
