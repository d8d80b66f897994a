"""Operators are answered while the loop is blocked, under overload, and during the end.

What is asserted is that they are answered at all, of a machine that may be busy with other things. In how
many milliseconds is printed: `pytest -s` shows it.
"""

from __future__ import annotations

import http.client
import os
import signal
import statistics
import threading
import time
from pathlib import Path

import pytest
from harness import UVICORN, Server, request
from operators import PATIENCE, Operators

from bridgehead.load import load

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

ADMIN = ("--admin", "127.0.0.1:0", "--no-access-log")
NARROW = ("--limit-concurrency", "10", "--limit-queue", "20", "--timeout-queue", "500ms")
PATHS = ("/livez", "/readyz", "/metrics", "/status.json", "/")


def ask_all(operators: Operators, when: str, rounds: int = 10) -> set[int]:
    """Every path, again and again, on one connection as a scraper does. Gives the statuses of `/readyz`."""
    times, ready = [], set()
    connection = http.client.HTTPConnection("127.0.0.1", operators.port, timeout=PATIENCE)
    for _ in range(rounds):
        for path in PATHS:
            began = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.read()
            times.append(1e3 * (time.perf_counter() - began))
            assert answer.status == 200 or path == "/readyz"
            if path == "/readyz":
                ready.add(answer.status)
    connection.close()
    print(f"{when}: median {statistics.median(times):.1f} ms, longest {max(times):.1f} ms")
    return ready


def test_operators_are_answered_at_once_while_the_loop_is_blocked(loop: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0")
    with Server("blocking_app:app", "--loop", loop, *ADMIN) as server:
        operators = Operators(server)
        with server.connect() as client:
            client.send(request(f"/block?gates={tmp_path}"))
            operators.until(lambda: operators.ask("/readyz")[0] == 503)
            assert ask_all(operators, "blocked") == {503}
            os.close(os.open(tmp_path / "0", os.O_WRONLY))
            assert client.read_response().body == b"at last"


def test_operators_are_answered_at_once_while_c_code_keeps_the_gil() -> None:
    with Server("health_app:app", *ADMIN) as server:
        operators = Operators(server)
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/hold?seconds=6&how=lock"))
            operators.until(lambda: operators.status()["workers"][0]["loop"]["blocked_for"] > 0)
            ask_all(operators, "without the GIL")
            assert client.read_response().body == b"held"


def test_operators_are_answered_at_once_at_four_times_too_much(loop: str) -> None:
    # 10 ms of the processor each: a hundred a second at the most.
    target = "/hold?seconds=0.01&how=compute"
    with Server("health_app:app", "--loop", loop, *ADMIN, *NARROW) as server:
        operators = Operators(server)
        url = f"http://127.0.0.1:{server.port}{target}"
        offered = threading.Thread(
            target=load, args=(url,), kwargs={"rate": 400, "connections": 300, "duration": 6}
        )
        offered.start()
        operators.until(lambda: sum(operators.status()["total"]["refusals"].values()) > 0)
        ask_all(operators, "four times too much")
        offered.join(10 * PATIENCE)
        assert not offered.is_alive()


def test_operators_are_answered_at_once_during_the_end() -> None:
    with Server("health_app:app", *ADMIN) as server:
        operators = Operators(server)
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/wait?seconds=6"))
            operators.until(lambda: operators.samples()['bridgehead_requests{at="application"}'] == 1)
            os.kill(server.pid, signal.SIGTERM)
            operators.until(lambda: operators.ask("/readyz")[0] == 503)
            assert ask_all(operators, "during the end") == {503}
            assert client.read_response().body == b"waited"
        server.wait_exit()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_was_told_to_end_is_not_ready_though_its_loop_has_yet_to_hear_of_it(
    loop: str, workers: str, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "0")
    with Server("blocking_app:app", "--loop", loop, "--workers", workers, *ADMIN) as server:
        operators = Operators(server)
        operators.until(lambda: operators.ask("/readyz") == (200, "ok\n"))
        with server.connect() as client:
            client.send(request(f"/block?gates={tmp_path}"))
            operators.until(lambda: held(operators) == ["serving"])
            server.signal(signal.SIGTERM)
            operators.until(lambda: held(operators) == ["last_call"])
            ready, why = operators.ask("/readyz")
            assert (ready, why.count("is about to end")) == (503, why.count("worker "))
            os.close(os.open(tmp_path / "0", os.O_WRONLY))
            assert client.read_response().body == b"at last"
        server.assert_ended_well()


def held(operators: Operators) -> list[str]:
    """The condition of each worker whose loop is held."""
    workers = operators.status()["workers"]
    return [each["condition"] for each in workers if each["loop"]["blocked_for"] > 0]
