"""The load tests of the project run: short, and judged by what they say, never by how fast anything was."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.pytest_plugin import Load, ServeApp
from bridgehead.testing import Entry, Event
from bridgehead.testing.ledger import ids_of

LOADTESTS = Path(__file__).resolve().parent.parent.parent / "loadtests"
SCENARIOS = sorted((LOADTESTS / "scenarios").glob("*.toml"))
COMMANDS = [file for file in sorted(LOADTESTS.glob("*.py")) if "__main__" in file.read_text()]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=LOADTESTS, capture_output=True, text=True, timeout=55)


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda path: path.stem)
def test_the_scenarios_are_answered_by_the_shop(file: Path, serve_app: ServeApp, load: Load) -> None:
    server = serve_app("shop:app", cwd=LOADTESTS)
    report = load(server, scenarios=str(file), requests=150, connections=10)
    report.assert_slo(errors=0)
    assert len(report.scenarios) == len(tomllib.loads(file.read_text())["scenario"])
    assert all(each.requests for each in report.scenarios)


@pytest.mark.parametrize("file", COMMANDS, ids=lambda path: path.stem)
def test_whoever_asks_a_command_what_it_is_for_is_told_and_nothing_runs(file: Path) -> None:
    pytest.importorskip("uvloop")
    done = run(file.name, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {file.name}")
    assert not done.stderr


def test_restarts_under_load_lose_nothing() -> None:
    done = run("drain.py", "--restarts", "2", "--rate", "50")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("kept: nothing was lost, run twice, or cut\n")


def test_reloads_under_load_fail_nothing_and_their_worst_request_is_told(tmp_path: Path) -> None:
    told = tmp_path / "table.md"
    few = ("--reloads", "1", "--import-seconds", "0.1", "--pause", "0.1", "--rate", "50")
    words = (*few, "--output", str(told))
    done = run("reloads.py", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The worst request of the reloads took " in told.read_text()


def test_counts_are_kept_in_the_callers_folder_though_the_server_runs_in_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    instructions = importlib.import_module("instructions")
    asked: list[Path] = []

    @contextmanager
    def started(_case: object, output: Path, _callers: int) -> Iterator[tuple[int, int]]:
        asked.append(output)
        yield 0, 0

    monkeypatch.setattr(instructions, "started", started)
    monkeypatch.setattr(instructions, "connected", lambda *_: nullcontext())
    monkeypatch.setattr(instructions, "ask", lambda _: None)
    monkeypatch.setattr(instructions, "control", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    kept = instructions.counted(instructions.CASES[0], Path("kept"))
    assert asked == [tmp_path / "kept" / "hello.out"]
    assert kept == tmp_path / "kept" / "hello.out.1"


@pytest.mark.parametrize(
    ("answered", "kinds", "unfinished", "starts", "ends", "told"),
    [
        (5, {}, 0, 5, 5, []),
        (5, {"closed": 2, "reset": 1}, 0, 5, 5, []),
        (5, {"closed": 2}, 0, 6, 6, ["6 requests of the load were begun, 5 answered, 2 closed"]),
        (5, {"reset": 1}, 1, 6, 6, []),  # the one that the load gave up
        (5, {}, 0, 4, 4, ["4 requests of the load were begun, 5 answered, 0 closed"]),
        (5, {"timeout": 1}, 0, 5, 5, ["1 requests of the load had neither an answer nor a close"]),
        (5, {}, 0, 5, 4, ["1 requests of the load never ended"]),
    ],
)
def test_what_became_of_a_load_under_restarts_is_judged_by_the_ledger(
    answered: int,
    kinds: dict[str, int],
    unfinished: int,
    starts: int,
    ends: int,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    judge = importlib.import_module("drain").wrong_of_load
    report = SimpleNamespace(
        requests=answered + sum(kinds.values()),
        errors=sum(kinds.values()),
        errors_by_kind=kinds,
        unfinished=unfinished,
    )
    ledger = [Entry(number, Event.STARTED, 1) for number in range(starts)]
    ledger += [Entry(number, Event.FINISHED, 1) for number in range(ends)]
    others = [Entry(ids_of(7)[0], Event.STARTED, 1)]
    assert list(judge(report, ledger + others)) == told
    again = [Entry(0, Event.STARTED, 2)]
    assert "1 requests of the load ran twice, as 0 did" in list(judge(report, ledger + again))


def test_a_soak_looks_at_the_server_after_each_slice() -> None:
    done = run("soak.py", "--minutes", "0.1", "--slice", "1", "--rate", "100")
    rows = [line for line in done.stdout.splitlines() if line.startswith("| 0.")]
    assert len(rows) >= 2, done.stdout + done.stderr
    assert all(row.endswith("| 0 |") for row in rows), done.stdout
    kinds = next(line for line in done.stdout.splitlines() if line.startswith("HTTP/1: "))
    counts = {
        name: int(count.replace(",", "")) for name, count in re.findall(r"([^:,]+): ([\d,]+)(?:, |$)", kinds)
    }
    assert counts.keys() == {"HTTP/1", "HTTP/2", "WebSockets", "uploads", "waiting"}, done.stdout
    assert all(counts.values()), done.stdout


# Ten minutes of looks: what each figure is at the look of this number, beside the usual.
SOAKS = """
import random
from dataclasses import replace
from soak import Sample, judge
usual = Sample(at=0, memory=30, descriptors=20, tasks=5, p99=0.005, requests=1, errors=0)
chance = random.Random("soak")
def noise(width):
    return chance.uniform(-width, width)
def said(looks=60, **figures):
    changed = [{name: getattr(usual, name) + by(n) for name, by in figures.items()} for n in range(looks)]
    verdict = judge([replace(usual, at=10 * n, **each) for n, each in enumerate(changed)])
    return [[line.split(":")[0] for line in lines] for lines in (verdict.broken, verdict.untold)]
"""


@pytest.mark.parametrize(
    ("figures", "broken", "untold"),
    [
        ("", [], []),
        ("memory=lambda n: 8 * n / 360", ["memory grew"], []),
        ("memory=lambda n: 0.9 * n / 360", [], []),
        ("memory=lambda n: 60 * n / 360 + noise(1)", ["memory grew"], []),
        # An allocator takes in pieces, and a saw has teeth: ten minutes do not tell a MiB an hour from none.
        ("memory=lambda n: n // 30", [], ["memory grew"]),
        ("memory=lambda n: noise(1)", [], ["memory grew"]),
        ("looks=3000, memory=lambda n: noise(1)", [], []),
        ("descriptors=lambda n: n // 20", ["descriptors grew"], []),
        ("tasks=lambda n: n // 30, descriptors=lambda n: n // 20", ["descriptors grew"], ["tasks grew"]),
        ("tasks=lambda n: n // 20", ["tasks grew"], []),
        ("descriptors=lambda n: 3 * (n > 35)", ["descriptors grew"], []),
        ("descriptors=lambda n: n == 40, tasks=lambda n: n == 50", [], []),
        ("p99=lambda n: 0.02 * n / 60", ["p99 grew"], []),
        ("p99=lambda n: 0.025 * (n == 44) + 0.002 * n / 60 + noise(0.0005)", [], []),
        ("errors=lambda n: n == 3", ["1 errors"], []),
        ("looks=1", ["too short"], []),
        ("looks=5", [], ["memory grew", "descriptors grew", "tasks grew", "p99 grew"]),
    ],
)
def test_a_soak_says_what_surely_grew_and_what_it_cannot_tell(
    figures: str, broken: list[str], untold: list[str]
) -> None:
    done = run("-c", SOAKS + f"print([{broken}, {untold}] == (told := said({figures})), told)")
    assert done.stdout.startswith("True"), done.stdout + done.stderr


def test_the_yardstick_refuses_wrong_answers_and_finds_the_best_peer() -> None:
    program = (
        "from results import Burst, Measured, Row, details, failures, summary\n"
        "from workloads import WORKLOADS\n"
        "def of(cpu, wrong=''):\n"
        "    burst = Burst(cpu=cpu, rate=1e6 / cpu, p50=0.001, p99=0.002)\n"
        "    return Measured(bursts=[burst] * 3, memory=30, wrong=wrong)\n"
        "row = Row(WORKLOADS[0], call=1.0)\n"
        "row.servers = {'bridgehead': of(10), 'bridgehead again': of(11), 'uvicorn': of(20),\n"
        "               'granian': of(16), 'liar': of(1, 'status 500'), 'hyper alone': of(7)}\n"
        "print(failures([row])); print(summary([row])); print(details(row))\n"
        "row.servers['bridgehead'] = of(10, 'status 404')\n"
        "row.servers['bridgehead again'].bursts.clear()\n"
        "print(failures([row])); print(summary([row]))\n"
    )
    said = run("-c", program)
    ours = "| hello, 1 connection | 10.0 | +10% | 16.0 (granian) | **0.62** | 1.00, 1.00 | 8.0 |"
    assert f"{ours} 1.25 | 1.5 ✓ | 1.00 |" in said.stdout, said
    assert "| liar | refused: status 500 |" in said.stdout
    assert "| limit: hyper and the call | 8.0 |" in said.stdout
    assert said.stdout.startswith("[]\n")
    assert "| hello, 1 connection | **refused: status 404** |" in said.stdout
    refused = ["bridgehead: status 404", "bridgehead again: not measured"]
    assert str([f"hello, 1 connection: {each}" for each in refused]) in said.stdout


@pytest.mark.skipif(shutil.which("wrk") is None, reason="needs wrk")
@pytest.mark.parametrize(
    ("client", "answer", "refusal"),
    [
        ("wrk", (200, "hello"), ""),
        ("wrk", (302, "hello"), "the first: status 302 with 5 bytes"),
        ("wrk", (200, "olleh"), "the first: status 200 with 5 bytes"),
        ("ours", (302, "hello"), "assertion: "),
        ("ours", (200, "hello!"), "bytes for"),
    ],
)
def test_a_burst_of_wrong_answers_is_refused(client: str, answer: tuple[int, str], refusal: str) -> None:
    status, body = answer
    program = (
        "import asyncio, os\n"
        "from dataclasses import replace\n"
        "from clients import burst\n"
        "from workloads import WORKLOADS\n"
        "async def answer(reader, writer):\n"
        "    while await reader.read(65536):\n"
        f"        writer.write(b'HTTP/1.1 {status} Said\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n')\n"
        f"        writer.write(b'{body}')\n"
        "    writer.close()\n"
        "async def main():\n"
        "    server = await asyncio.start_server(answer, '127.0.0.1', 0)\n"
        "    port, core = server.sockets[0].getsockname()[1], min(os.sched_getaffinity(0))\n"
        f"    asked = replace(WORKLOADS[0], client={client!r})\n"
        "    came = await asyncio.to_thread(burst, port, '/', asked, core, 1)\n"
        "    print(came.answers > 0, came.wrong, sep='|')\n"
        "asyncio.run(main())\n"
    )
    done = run("-c", program)
    counted, _, wrong = done.stdout.strip().partition("|")
    assert refusal in wrong, done
    assert bool(wrong) == bool(refusal), done
    assert counted == "True" or refusal, done


class Greeting:
    """An application of one answer; every so many comes another of the same length."""

    def __init__(self, every: int | None) -> None:
        self.every = every
        self.numbers = itertools.count(1)

    async def __call__(self, scope: Any, _: object, send: Callable[..., Awaitable[None]]) -> None:
        assert scope["type"] == "http"
        body = b"olleh" if self.every and next(self.numbers) % self.every == 0 else b"hello"
        headers = [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.mark.skipif(shutil.which("wrk") is None, reason="needs wrk")
@pytest.mark.parametrize("row", ["16 pipelined", "HTTP/2 by TLS, 16 × 16", "HTTP/2 in the clear, 16 × 16"])
def test_a_wrong_answer_in_twenty_ends_a_row_that_h2load_asks(
    row: str, serve_app: ServeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    probe = importlib.import_module("clients").probe
    [workload] = [each for each in importlib.import_module("workloads").WORKLOADS if each.name == row]
    core = min(os.sched_getaffinity(0))
    assert workload.client == "h2load"
    for every in (None, 20):
        server = serve_app(Greeting(every), ssl_self_signed=workload.speaks == "h2")
        assert bool(probe(server.port, "/", workload, core)) == bool(every)


@pytest.mark.skipif(shutil.which("h2load") is None, reason="needs h2load")
@pytest.mark.parametrize("row", ["16 pipelined", "HTTP/2 in the clear, 16 × 16"])
def test_a_row_that_h2load_asks_has_latencies(
    row: str, serve_app: ServeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    burst = importlib.import_module("clients").burst
    [workload] = [each for each in importlib.import_module("workloads").WORKLOADS if each.name == row]
    came = burst(serve_app(Greeting(None)).port, "/", workload, min(os.sched_getaffinity(0)), 1)
    assert came.wrong == ""
    assert 0 < came.p50 <= came.p99 < 60


@pytest.mark.parametrize(
    ("statuses", "data", "refusal"),
    [
        ("200 2xx, 0 3xx, 0 4xx, 0 5xx", 1000, ""),
        ("200 2xx, 0 3xx, 0 4xx, 0 5xx", 1010, ""),  # two that were under way at the end
        ("202 2xx, 0 3xx, 0 4xx, 0 5xx", 1000, ""),  # their heads alone
        ("999 2xx, 0 3xx, 0 4xx, 0 5xx", 1000, "status codes: 999 2xx, 0 3xx, 0 4xx, 0 5xx"),
        ("200 2xx, 0 3xx, 0 4xx, 0 5xx", 200, "200 bytes for 200 answers of 5"),
        ("200 2xx, 0 3xx, 0 4xx, 0 5xx", 9999, "9999 bytes for 200 answers of 5"),
        ("0 2xx, 200 3xx, 0 4xx, 0 5xx", 1000, "status codes: 0 2xx, 200 3xx, 0 4xx, 0 5xx"),
    ],
)
def test_what_h2load_counts_is_judged(
    statuses: str, data: int, refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    workloads = importlib.import_module("workloads").WORKLOADS
    workload = next(each for each in workloads if each.client == "h2load")
    said = (
        "requests: 216 total, 216 started, 200 done, 200 succeeded, 0 failed, 0 errored, 0 timeout\n"
        f"status codes: {statuses}\n"
        f"traffic: 25KB (25600) total, 17KB (17408) headers (space savings 0.00%), 1KB ({data}) data\n"
    )
    judged = importlib.import_module("clients").wrong_of_h2load(said, workload, b"hello")
    assert judged == refusal


def test_h2load_that_was_not_given_http2_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    workloads = importlib.import_module("workloads").WORKLOADS
    judge = importlib.import_module("clients").wrong_of_h2load
    for spoken, refusal in (("h2", ""), ("h2c", ""), ("http/1.1", "http/1.1 instead of HTTP/2")):
        said = (
            f"Application protocol: {spoken}\n"
            "requests: 200 total, 200 started, 200 done, 200 succeeded, 0 failed, 0 errored, 0 timeout\n"
            "status codes: 200 2xx, 0 3xx, 0 4xx, 0 5xx\n"
            "traffic: 25KB (25600) total, 17KB (17408) headers (space savings 0.00%), 1KB (1000) data\n"
        )
        asked = next(each for each in workloads if each.speaks == "h2")
        assert judge(said, asked, b"hello") == refusal


@pytest.mark.parametrize("spoken", ["https", "h2", "h2c", "ws"])
def test_a_row_is_asked_by_what_it_is_named_for(spoken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    servers, clients = importlib.import_module("servers"), importlib.import_module("clients")
    for workload in importlib.import_module("workloads").WORKLOADS:
        if workload.speaks != spoken:
            continue
        with servers.started("bridgehead", workload.app, 0, spoken) as server:
            server.signal(signal.SIGCONT)
            assert clients.probe(server.port, workload.path, workload, 0) == ""
            other = replace(workload, due=b"other")
            assert spoken == "ws" or clients.probe(server.port, workload.path, other, 0) != ""
            if workload.client == "ours":
                came = clients.burst(server.port, workload.path, workload, 0, 1)
                assert came.answers > 0 == len(came.wrong)


@pytest.mark.parametrize("spoken", ["http", "https", "h2", "h2c", "ws"])
def test_a_server_that_has_died_has_no_figure_in_a_row(spoken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    workloads = importlib.import_module("workloads").WORKLOADS
    bursts, results = importlib.import_module("bursts"), importlib.import_module("results")
    workload = next(each for each in workloads if each.speaks == spoken)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    found = results.Measured()
    assert bursts.ask(SimpleNamespace(name="gone", port=port), workload, 0, 1, found) is None
    assert found.wrong


MORTAL = """
import os, signal, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            os.kill(os.getpid(), signal.SIGKILL)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_):
        pass
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_a_server_that_dies_says_how_and_is_started_anew_for_the_next_workload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    compare, servers = importlib.import_module("compare"), importlib.import_module("servers")
    one = importlib.import_module("workloads").WORKLOADS[0]
    asked = replace(one, client="ours", connections=2, nginx=None)
    dying = replace(asked, name="deadly", path="/die")
    mortal = ["-c", MORTAL, "{port}"]
    monkeypatch.setitem(servers.COMMANDS, "uvicorn", mortal)
    monkeypatch.setitem(servers.COMMANDS, "granian", ["-c", "raise SystemExit('no | at all')"])
    monkeypatch.setattr(compare, "BARE", tmp_path / "none")
    monkeypatch.setattr(compare, "call_alone", lambda *_: None)
    monkeypatch.setattr(importlib.import_module("lineup"), "_LAST_BREATH", 30.0)
    core = min(os.sched_getaffinity(0))
    options = SimpleNamespace(rounds=1, seconds=1, quick=True)
    rows: list[Any] = []
    compare.measured([dying, asked, dying], ["uvicorn", "granian"], [core], options, rows)
    refused = [row.refused() for row in rows]
    assert [each["granian"] for each in refused] == ["did not start: no / at all"] * 3
    assert [each.get("uvicorn", "")[:16] for each in refused] == ["died of SIGKILL ", "", "died of SIGKILL "]
    assert rows[1].good()["uvicorn"].rate > 0


@pytest.mark.parametrize(
    ("place", "quick", "only", "told"),
    [
        ("", False, "", "not installed, and left out: uvicorn, nginx\n"),
        ("", False, "FastAPI", "not installed, and left out: uvicorn\n"),
        ("", True, "", "not installed, and left out: uvicorn\n"),
        ("/usr/sbin/nginx", False, "", "not installed, and left out: uvicorn\n"),
    ],
)
def test_what_is_not_installed_is_told_nginx_as_well(
    place: str,
    quick: bool,
    only: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    compare = importlib.import_module("compare")
    monkeypatch.setattr(compare, "nginx", lambda: place)
    monkeypatch.setattr(compare, "available", lambda _: ["bridgehead"])
    options = SimpleNamespace(servers=["bridgehead", "uvicorn"], quick=quick, only=only, runtimes=False)
    assert compare.servers_of(options) == ["bridgehead"]
    assert capsys.readouterr().err == told


def test_the_quick_yardstick_asks_hyper_less_and_all_others_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    is_spared = importlib.import_module("compare").is_spared
    for rounds, asked in ((1, [1]), (2, [2]), (3, [2, 3])):
        quick = SimpleNamespace(quick=True, rounds=rounds)
        assert [n for n in range(rounds + 1) if not is_spared("hyper alone", n, quick)] == asked
        assert not any(is_spared("bridgehead again", n, quick) for n in range(rounds + 1))
    assert not is_spared("hyper alone", 0, SimpleNamespace(quick=False, rounds=3))


def test_the_other_tables_keep_a_server_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    servers, special = importlib.import_module("servers"), importlib.import_module("special")
    variants = importlib.import_module("variants")
    monkeypatch.setitem(servers.COMMANDS, "bridgehead", ["-m", "bridgehead", "--nonsense"])
    tables = [special.idle(["bridgehead"], [0, 0]), special.start_up(["bridgehead"], [0, 0], 1)]
    tables.append(special.late(["bridgehead"], [0, 0], 1))
    assert [len(special.failures(each)) for each in tables] == [1, 1, 1]
    refused = variants.table({"bridgehead": importlib.import_module("results").Measured(wrong="no answer")})
    assert special.failures(refused) == ["| bridgehead | refused: no answer | | | | |"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "nosuch"], "no workload has 'nosuch' in its name; there are 'hello, 1 connection', "),
        (["--rounds", "0"], "rounds and seconds begin at 1"),
    ],
)
def test_a_measurement_of_nothing_is_refused(words: list[str], told: str) -> None:
    done = run("compare.py", *words)
    assert done.returncode == 2
    assert told in done.stderr


def test_the_applications_that_are_measured_answer_what_is_due(
    serve_app: ServeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    workloads = importlib.import_module("workloads").WORKLOADS
    # `asks` wants a server to ask.
    asked = {
        (each.app, each.body): each for each in workloads if each.app != "apps:asks" and each.speaks == "http"
    }
    for app in {each.app for each in asked.values()}:
        server = serve_app(app, cwd=LOADTESTS)
        for each in asked.values():
            if each.app == app:
                method = "POST" if each.body else "GET"
                headers = {"content-type": each.content_type}
                answer = server.client.request(method, each.path, content=each.body or None, headers=headers)
                assert (answer.status_code, answer.content) == (200, each.due), app
