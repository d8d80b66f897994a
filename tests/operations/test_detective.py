"""What holds a loop is told by its kind: in the log, in the metrics, in the status."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from harness import UVICORN, Server, request
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
    ("hash", "hash_much", re.compile(r"a C call that let go of the GIL"), "call_without_gil"),
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
            assert "has been held" not in server.stderr
            assert client.read_response().body == b"held"
        operators.until(lambda: sample not in operators.samples())
        # Whoever looks may lose the GIL again before it has seen where: on a busy machine, now and then.
        assert hold(server, operators, "lock", "sleep_with_the_lock")


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
