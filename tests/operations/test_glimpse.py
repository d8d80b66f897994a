"""A call that keeps Python's lock is seen where it is while it runs, and nothing is disturbed by that."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Server, request
from harness.workers import serve, wait_all
from operators import Operators

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn knows nothing of its loop"),
    pytest.mark.skipif(not os.path.exists("/proc/self/syscall"), reason="the system does not tell"),
    pytest.mark.pairwise,
]

ADMIN = ("--admin", "127.0.0.1:0", "--no-access-log")
PATIENCE = 60.0
# Tells whether a handler of its own has been called for any of the signals that programs have for themselves.
TAKES = """
import signal

called = []


def take(*_):
    for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
        signal.signal(number, lambda number, frame: called.append(number))


def add_up():
    return sum(range(60_000_000))


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/take":
        take()
    add_up()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": repr(called).encode()})
"""


def blocking(operators: Operators, function: str) -> list[dict[str, Any]]:
    return [each for each in operators.status()["blocking"] if each["place"].startswith(f"{function}() at ")]


@pytest.mark.parametrize("how", ["in-the-first-step", "behind-its-body"])
def test_where_a_call_is_that_keeps_the_lock_is_known_with_its_request_while_it_does(
    loop: str, how: str
) -> None:
    with Server("health_app:app", "--loop", loop, *ADMIN) as server:
        operators = Operators(server)
        with server.connect(timeout=PATIENCE) as client:
            if how == "in-the-first-step":
                client.send(request("/hold?seconds=4&how=sum"))
            else:
                client.send(
                    b"POST /read-and-hold?seconds=4&how=sum HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
                )
                server.wait_line("reads")
                client.send(b"ab")
            operators.until(lambda: blocking(operators, "add_up_in_c") != [])
            # Its line needs the lock.
            assert "has been held" not in server.stderr
            path = "/hold" if how == "in-the-first-step" else "/read-and-hold"
            [place] = blocking(operators, "add_up_in_c")
            method = "GET" if how == "in-the-first-step" else "POST"
            assert (place["request"], place["cause"]) == (f"{method} {path}", "call_with_gil")
            assert client.read_response().body == b"held"
        line = server.wait_line("by add_up_in_c() at ")
        assert "or just before it" not in line
        assert f"in the request {method} {path}" in line
        operators.until(lambda: blocking(operators, "add_up_in_c")[0]["longest"] >= 2000)
        assert [each["count"] for each in operators.status()["blocking"]] == [1], "it is one step, told once"
        causes = operators.samples()['bridgehead_loop_slow_step_causes_total{cause="call_with_gil"}']
        assert causes == operators.samples()["bridgehead_loop_slow_steps_total"] == 1


def test_where_a_worker_kept_the_lock_and_for_whom_outlives_it() -> None:
    with serve(*ADMIN, target="health_app:app") as server:
        operators = Operators(server)
        wait_all(server)
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/hold?seconds=60&how=sum"))
            operators.until(lambda: blocking(operators, "add_up_in_c") != [])
            [held] = [each for each in operators.status()["workers"] if each["loop"]["blocked_for"] > 0]
            os.kill(held["process"], signal.SIGKILL)
        operators.until(
            lambda: (operators.status()["last_gone"] or {}).get("process") == held["process"],
        )
        [place] = operators.status()["blocking"]
        assert place["place"].startswith("add_up_in_c() at ")
        assert (place["request"], place["cause"]) == ("GET /hold", "call_with_gil")


def test_a_sleep_that_keeps_the_lock_is_not_cut_short(loop: str) -> None:
    with Server("health_app:app", "--loop", loop, *ADMIN) as server:
        assert server.ask("/hold?seconds=1.5&how=lock", timeout=PATIENCE).body == b"held"
        server.wait_line("by sleep_with_the_lock() at ")


@pytest.mark.parametrize("when", ["import", "request"])
def test_a_signal_that_the_application_takes_is_its_own(loop: str, tmp_path: Path, when: str) -> None:
    (tmp_path / "takes.py").write_text(TAKES + ("take()\n" if when == "import" else ""))
    with Server("takes:app", "--loop", loop, *ADMIN, cwd=tmp_path) as server:
        for path in ("/take", "/"):
            assert server.ask(path, timeout=PATIENCE).body == b"[]"
        operators = Operators(server)
        operators.until(lambda: blocking(operators, "add_up") != [])
