"""What holds a loop is told by its kind: in the log, in the metrics, in the status."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import APPS, UVICORN, Server, request
from harness.workers import serve, wait_all
from operators import Operators

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn knows nothing of its loop"),
    pytest.mark.skipif(not os.path.exists("/proc/self/syscall"), reason="the system does not tell"),
]

ADMIN = ("--admin", "127.0.0.1:0")
# A busy machine lets a thread run late: what is held is held for long enough to be looked at.
SECONDS = 1.5
PATIENCE = 60.0
SLEEPS = re.compile(r"system call \((clock_nanosleep|nanosleep|select|pselect6)\)")
WITHOUT = re.compile(r"a C call that let go of the GIL")
# How it is held, by which function, what is said of it, and the label.
KINDS = [
    ("python", "sleep_in_python", SLEEPS, "system_call"),
    ("read", "read_from_a_pipe", re.compile(r"system call \(read\)"), "system_call"),
    ("wait", "wait_for_a_lock", re.compile(r"system call \(futex\)"), "system_call"),
    ("compute", "compute_in_python", re.compile(r"Python code"), "python"),
    ("little-hashes", "hash_a_little_again_and_again", re.compile(r"Python code"), "python"),
    ("lock", "sleep_with_the_lock", re.compile(r"a C call that holds the GIL"), "call_with_gil"),
    ("sum", "add_up_in_c", re.compile(r"a C call that holds the GIL"), "call_with_gil"),
    ("match", "match_in_c", re.compile(r"a C call that holds the GIL"), "call_with_gil"),
    ("hash", "hash_much", WITHOUT, "call_without_gil"),
    ("pieces", "hash_piece_by_piece", WITHOUT, "call_without_gil"),
    ("compress", "compress_piece_by_piece", WITHOUT, "call_without_gil"),
    ("thread", "wait_for_another_thread", re.compile(r"the GIL, which another thread holds"), "other_thread"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("health_app:app", "--no-access-log", *ADMIN) as server:
        yield server


@pytest.fixture(scope="module")
def operators(server: Server) -> Operators:
    return Operators(server)


def hold(server: Server, operators: Operators, how: str, function: str) -> str:
    """Until it was looked at in time: whoever looks may be kept from it by a machine that is busy."""
    target = f"/hold?seconds={SECONDS}&how={how}&route=/hold/{{how}}"
    for _ in range(5):
        assert server.ask(target, timeout=PATIENCE).body == b"held"
        # What was looked at last is told a moment later.
        operators.until(lambda: operators.status()["workers"][0]["loop"]["blocked_for"] == 0)
        if blocking(operators, function):
            break
    return server.wait_line(f"by {function}() at ", timeout=PATIENCE)


def blocking(operators: Operators, function: str) -> list[dict[str, Any]]:
    return [each for each in operators.status()["blocking"] if function in each["place"]]


@pytest.mark.parametrize(("how", "function", "words", "label"), KINDS, ids=[each[0] for each in KINDS])
def test_what_holds_the_loop_is_told_by_its_kind(
    server: Server, operators: Operators, how: str, function: str, words: re.Pattern[str], label: str
) -> None:
    sample = f'bridgehead_loop_slow_step_causes_total{{cause="{label}"}}'
    before = operators.samples()[sample]
    line = hold(server, operators, how, function)
    assert words.search(line), line
    assert " or just before it, " not in line
    assert "in the request GET /hold (route /hold/{how})" in line
    operators.until(lambda: blocking(operators, function) != [])
    [place] = blocking(operators, function)
    assert place["cause"] == label
    assert words.search(place["by"])
    assert place["request"] == "GET /hold (route /hold/{how})"
    assert (place["count"] >= 1, place["longest"] >= 250) == (True, True)
    assert operators.samples()[sample] > before
    slowest = operators.status()["slowest"]
    mine = next(each for each in slowest if each["duration"] >= 1e3 * SECONDS / 2)
    assert (mine["method"], mine["path"], mine["status"]) == ("GET", "/hold", 200)
    assert mine["route"] == "/hold/{how}"


def test_a_sleep_behind_a_wait_for_another_thread_is_not_blamed_for_it(
    server: Server, operators: Operators
) -> None:
    causes: set[str] = set()
    for _ in range(5):
        hold(server, operators, "thread-before", "wait_for_another_thread_and_sleep")
        causes |= {each["cause"] for each in blocking(operators, "wait_for_another_thread_and_sleep")}
        # A machine that is busy may hide that it asks for the lock: then the cause is unknown.
        if "other_thread" in causes:
            break
    assert "other_thread" in causes
    assert "system_call" not in causes


def test_what_holds_the_loop_with_the_gil_is_told_while_it_does(loop: str) -> None:
    """For as long as that is, nothing can be logged: the log is Python's."""
    with Server("health_app:app", "--loop", loop, *ADMIN) as server:
        operators = Operators(server)
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/hold?seconds=8&how=lock"))
            sample = 'bridgehead_loop_blocked_by{worker="0",cause="call_with_gil"}'
            operators.until(lambda: operators.samples().get(sample) == 1)
            [worker] = operators.status()["workers"]
            assert worker["loop"]["blocked_by"] == "a C call that holds the GIL"
            operators.until(lambda: operators.status()["blocking"] != [])
            [place] = operators.status()["blocking"]
            assert re.fullmatch(r"sleep_with_the_lock\(\) at (\S+/)?health_app.py:\d+", place["place"])
            assert (place["request"], place["cause"], place["count"]) == ("GET /hold", "call_with_gil", 1)
            [worker] = operators.status()["workers"]
            assert worker["loop"]["longest_request"] == "GET /hold"
            assert "has been held" not in server.stderr
            assert client.read_response().body == b"held"
        operators.until(lambda: sample not in operators.samples())
        line = server.wait_line("by sleep_with_the_lock() at ")
        assert f"by {place['place']}, in the request GET /hold: " in line


def slow_power() -> int:
    """By which to raise a number, so that a processor computes for long enough."""
    number, took = 100_000, 0.0
    while took < 0.45:
        number, began = number * 3 // 2, time.process_time()
        _ = 7**number
        took = time.process_time() - began
    return number


def test_a_step_that_is_over_when_it_is_looked_at_is_told_with_its_request_and_its_length(loop: str) -> None:
    with Server("health_app:app", "--loop", loop, "--no-access-log", *ADMIN) as server:
        operators = Operators(server)
        for _ in range(8):
            # Over before anybody has Python's lock, and the next holds it at once.
            server.ask("/hold?seconds=0.3&how=lock", timeout=PATIENCE)
        server.ask(f"/raise?by={slow_power()}", timeout=PATIENCE)
        operators.until(lambda: blocking(operators, "raise_to_a_power() at ") != [])
        operators.until(lambda: operators.status()["workers"][0]["loop"]["blocked_for"] == 0)
        status = operators.status()
        [power] = [each for each in status["blocking"] if "raise_to_a_power" in each["place"]]
        assert (power["request"], power["cause"]) == ("GET /raise", "call_with_gil")
        # Read before it was over, or else what its framework says.
        lines = (APPS / "health_app.py").read_text().splitlines()
        line = next(number for number, line in enumerate(lines, 1) if "= 7**number" in line)
        assert power["place"].endswith((f"health_app.py:{line}", ", or what is around it"))
        # Of what nobody looked at while it ran there is the length alone: on a busy machine, now and then.
        requests = {each["request"] for each in status["blocking"]} - {""}
        assert requests == {"GET /raise", "GET /hold"}
        longest = status["workers"][0]["loop"]["longest_step"]
        assert max(round(each["longest"], 3) for each in status["blocking"]) <= longest


def test_a_call_that_is_over_soon_after_it_was_slow_is_not_called_python_code(loop: str) -> None:
    with Server("health_app:app", "--loop", loop, "--no-access-log", *ADMIN) as server:
        operators = Operators(server)

        def causes() -> dict[str, float]:
            samples = operators.samples()
            prefix = "bridgehead_loop_slow_step_causes_total"
            return {name: value for name, value in samples.items() if name.startswith(prefix) and value}

        def slow_after(seconds: float) -> float:
            server.ask(f"/hold?how=sum&seconds={seconds}", timeout=PATIENCE)
            operators.until(lambda: operators.status()["workers"][0]["loop"]["blocked_for"] == 0)
            slow = operators.samples()["bridgehead_loop_slow_steps_total"]
            operators.until(lambda: sum(causes().values()) >= slow)
            return slow

        seconds = 0.05
        while slow_after(seconds) == 0:
            seconds *= 1.1
        # Not much longer: it is over soon after whoever looks has asked for the lock.
        for _ in range(10):
            slow_after(seconds * 1.4)
        assert not any("python" in name for name in causes()), causes()


def test_a_callback_that_is_no_python_code_is_told_by_its_name_as_far_as_the_loop_shows_it(loop: str) -> None:
    with Server("health_app:app", "--loop", loop, "--no-access-log", *ADMIN) as server:
        operators = Operators(server)
        names = dict.fromkeys(("sleep", "lock"), "a callback that is no Python code")
        if "uvloop" not in loop:
            names = {"sleep": "the callback time.sleep()", "lock": "the callback lock.acquire()"}
        for kind, place in names.items():
            for _ in range(5):
                server.ask(f"/call-soon?kind={kind}&seconds={SECONDS}", timeout=PATIENCE)
                operators.until(lambda: operators.status()["workers"][0]["loop"]["blocked_for"] == 0)
                if blocking(operators, place):
                    break
            operators.until(lambda place=place: blocking(operators, place) != [])  # type: ignore[misc]
            [found] = blocking(operators, place)
            assert (found["cause"], found["request"]) == ("system_call", "")


INSTALLED = """
import subprocess


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    subprocess.run(["sleep", "1"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ran"})
"""


def test_an_application_that_is_installed_among_libraries_is_told_by_its_own_line(tmp_path: Path) -> None:
    libraries = tmp_path / "libraries"
    (libraries / "shop").mkdir(parents=True)
    (libraries / "shop" / "__init__.py").touch()
    (libraries / "shop" / "web.py").write_text(INSTALLED)
    # Where Python looks for libraries, as in a container whose application is a wheel.
    folder = repr(str(libraries))
    starts = f"import site, sys; site.getsitepackages = lambda: [{folder}]; sys.path.append({folder})"
    (tmp_path / "sitecustomize.py").write_text(starts)
    env = {"PYTHONPATH": str(tmp_path)}
    with Server("shop.web:app", *ADMIN, env=env) as server:
        operators = Operators(server)
        assert server.ask("/", timeout=PATIENCE).body == b"ran"
        operators.until(lambda: blocking(operators, "app() at ") != [])
        [place] = operators.status()["blocking"]
        assert place["place"].endswith("shop/web.py:8")


def test_a_place_that_holds_the_loop_again_is_counted_and_told_at_its_tenth_time(loop: str) -> None:
    with Server("health_app:app", "--loop", loop, "--no-access-log", "--slow-step", "50ms", *ADMIN) as server:
        operators = Operators(server)

        def count() -> int:
            return sum(each["count"] for each in blocking(operators, "sleep_in_python"))

        while count() < 10:
            server.ask("/hold?seconds=0.3&how=python", timeout=PATIENCE)
        operators.until(lambda: operators.status()["workers"][0]["loop"]["blocked_for"] == 0)
        told = [line for line in server.stderr.splitlines() if "by sleep_in_python() at " in line]
        numbers = [line.rpartition(": ")[2].partition(". ")[2] for line in told]
        assert numbers == ["Time 1 there; time 10 is told next.", "Time 10 there; time 100 is told next."]
        [place] = blocking(operators, "sleep_in_python")
        samples = operators.samples()
        label = f'{{place="{place["place"]}"}}'
        assert samples[f"bridgehead_loop_slow_place_steps{label}"] == place["count"]
        assert samples[f"bridgehead_loop_slow_place_longest_seconds{label}"] >= 0.05


REPORTS = """
from fastapi import FastAPI

app = FastAPI()


@app.get("/reports/{by}")
async def report(by: int):
    _ = 7**by
"""


def test_a_line_behind_which_nothing_is_called_is_told_as_well(loop: str, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    (tmp_path / "reports.py").write_text(REPORTS)
    with Server("reports:app", "--loop", loop, *ADMIN, cwd=tmp_path) as server:
        operators = Operators(server)
        by = slow_power()
        server.ask(f"/reports/{by}", timeout=PATIENCE)
        operators.until(lambda: operators.status()["blocking"] != [])
        operators.until(lambda: operators.status()["workers"][0]["loop"]["blocked_for"] == 0)
        [place] = operators.status()["blocking"]
        # Read before it was over; else there is the handler, as the framework has found it.
        exactly, about = "report() at reports.py:9", "the handler report() at reports.py:7"
        assert place["place"] == exactly or about in place["place"]
        assert place["request"] == f"GET /reports/{by} (route /reports/{{by}})"


def test_the_slowest_requests_are_shown_and_their_number_is_bounded(loop: str) -> None:
    with Server("health_app:app", "--loop", loop, "--no-access-log", "--slow-step", "0", *ADMIN) as server:
        operators = Operators(server)
        assert operators.status()["slowest"] == []
        server.ask("/hold?seconds=0.2&how=python&secret=1")
        for _ in range(50):
            server.ask("/snapshot")
        slowest = operators.status()["slowest"]
        assert slowest[0]["path"] == "/hold"
        assert slowest[0]["route"] is None
        assert slowest[0]["duration"] >= 200
        assert "secret" not in operators.ask("/status.json")[1], (
            "what comes behind a path may be nobody's business"
        )
        assert [each["duration"] for each in slowest] == sorted(
            (each["duration"] for each in slowest), reverse=True
        )
        assert len(slowest) <= 16


def test_where_a_worker_was_blocked_is_known_when_it_is_dead() -> None:
    with serve(*ADMIN, env={"RELEASE": "/nowhere/at/all"}) as server:
        operators = Operators(server)
        wait_all(server)
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/block"))
            operators.until(lambda: bool(operators.status()["blocking"]))
            [held] = [each for each in operators.status()["workers"] if each["loop"]["blocked_for"] > 0]
            os.kill(held["process"], signal.SIGKILL)
        operators.until(
            lambda: held["process"] not in {each["process"] for each in operators.status()["workers"]}
        )
        assert operators.status()["blocking"] != []


def test_how_long_a_worker_was_blocked_outlives_it_with_the_place_whether_it_ended_in_it_or_later() -> None:
    sample = 'bridgehead_loop_longest_step_seconds{worker="gone"}'
    with serve(*ADMIN, target="health_app:app") as server:
        operators = Operators(server)
        wait_all(server)
        server.ask("/hold?seconds=1.2", timeout=PATIENCE)
        seconds = loses_the_one_that_held(operators, lambda loop: loop["longest_step"] > 1200)
        assert 1.2 <= seconds < operators.samples()[sample] + 1e-3
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/hold?seconds=60&how=wait"))
            held = loses_the_one_that_held(operators, lambda loop: loop["blocked_for"] > 2500)
        [waited] = blocking(operators, "wait_for_a_lock")
        assert held - 1e-3 < waited["longest"] / 1e3 < operators.samples()[sample] + 1e-3
        assert operators.status()["total"]["longest_step"] > waited["longest"] - 1
        assert operators.status()["last_gone"]["loop"]["blocked_for"] >= 2500


def test_for_which_request_the_longest_step_was_is_shown_while_it_runs_and_outlives_its_worker() -> None:
    with serve(*ADMIN, target="health_app:app") as server:
        operators = Operators(server)
        wait_all(server)
        assert operators.status()["total"]["longest_request"] is None
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/hold?seconds=60&how=wait"))
            loses_the_one_that_held(operators, lambda loop: loop["longest_request"] == "GET /hold")
        status = operators.status()
        assert status["last_gone"]["loop"]["longest_request"] == "GET /hold"
        assert status["total"]["longest_request"] == "GET /hold"


def test_where_and_for_which_request_a_worker_kept_the_lock_until_it_ended_is_known() -> None:
    with serve(*ADMIN, target="health_app:app") as server:
        operators = Operators(server)
        wait_all(server)
        with server.connect(timeout=PATIENCE) as client:
            client.send(
                b"POST /read-and-hold?seconds=60&how=lock HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
            )
            server.wait_line("reads")
            client.send(b"ab")
            operators.until(lambda: blocking(operators, "sleep_with_the_lock() at ") != [])
            loses_the_one_that_held(operators, lambda loop: loop["longest_request"] == "POST /read-and-hold")
        [place] = operators.status()["blocking"]
        assert "sleep_with_the_lock() at " in place["place"]
        assert (place["request"], place["cause"], place["count"]) == (
            "POST /read-and-hold",
            "call_with_gil",
            1,
        )


def loses_the_one_that_held(operators: Operators, is_it: Callable[[dict[str, Any]], bool]) -> float:
    """Kills the worker whose loop fares so. Gives the longest step that it showed, in seconds."""
    found: list[dict[str, Any]] = []

    def finds_it() -> bool:
        found[:] = [each for each in operators.status()["workers"] if is_it(each["loop"])]
        return found != []

    operators.until(finds_it)
    os.kill(found[0]["process"], signal.SIGKILL)
    operators.until(lambda: (operators.status()["last_gone"] or {}).get("process") == found[0]["process"])
    return float(found[0]["loop"]["longest_step"]) / 1e3
