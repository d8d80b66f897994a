"""What a process that serves alone has counted, and where operators ask, when another succeeds it."""

from __future__ import annotations

import threading
from signal import SIGHUP, SIGUSR2

import pytest
from harness import UVICORN, Server, request
from operators import Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

ADMIN = ("--admin", "127.0.0.1:0", "--no-access-log")
ANSWERED = "http_server_request_duration_seconds_count"


def answered(operators: Operators) -> float:
    return sum(value for name, value in operators.samples().items() if name.startswith(ANSWERED))


class Prober(threading.Thread):
    """Asks again and again, as an orchestrator does, until it is told to stop."""

    def __init__(self, operators: Operators) -> None:
        super().__init__()
        self._operators = operators
        self._is_over = threading.Event()
        self.answers: set[tuple[int, str] | str] = set()

    def run(self) -> None:
        while not self._is_over.is_set():
            try:
                self.answers.add(self._operators.ask("/livez"))
            except OSError as problem:
                self.answers.add(repr(problem))

    def stop(self) -> None:
        self._is_over.set()
        self.join()


def test_what_one_process_has_counted_is_kept_by_its_successor_and_nobody_is_refused_meanwhile(
    loop: str,
) -> None:
    with Server("wire_app:app", "--loop", loop, *ADMIN) as server, server.connect() as stays:
        operators = Operators(server)
        for _ in range(5):
            assert server.ask("/hello").status == 200
        stays.send(request("/until-gone"))
        assert stays.read_head()[1] == 200
        prober = Prober(operators)
        prober.start()
        server.signal(SIGHUP)
        server.wait_line("becomes its parent")
        for _ in range(3):
            assert server.ask("/hello").status == 200
        # The one that runs in the old process is there, and what that has counted.
        operators.until(lambda: operators.samples()['bridgehead_requests{at="application"}'] == 1)
        operators.until(lambda: answered(operators) == 8)
        assert {each["condition"] for each in operators.status()["workers"]} == {"serving", "last_call"}
        stays.close()
        server.wait_line("Finished server process")
        operators.until(lambda: len(operators.status()["workers"]) == 1)
        operators.until(lambda: answered(operators) == 9)
        samples = operators.samples()
        assert samples['bridgehead_worker_starts_total{reason="initial"}'] == 1
        assert samples['bridgehead_worker_starts_total{reason="reload"}'] == 1
        assert samples['bridgehead_worker_ends_total{reason="stopped"}'] == 1
        # The parent is a program of its own, and gives way to a newer one.
        server.signal(SIGUSR2)
        server.wait_line("A new program is the parent now")
        operators.until(lambda: operators.samples()['bridgehead_worker_starts_total{reason="reload"}'] == 2)
        assert server.ask("/hello").status == 200
        operators.until(lambda: answered(operators) == 10)
        prober.stop()
        assert prober.answers == {(200, "ok\n")}
        server.stop()
