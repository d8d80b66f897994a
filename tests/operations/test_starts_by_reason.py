"""Workers are counted by why they were started, and what one was at when it died is not lost."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import ExitStack

import pytest
from harness import UVICORN, Server, request
from harness.workers import serve, wait_all, who
from operators import Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

ADMIN = ("--admin", "127.0.0.1:0")


def starts(operators: Operators) -> dict[str, int]:
    """Those that there were."""
    return {why: count for why, count in operators.status()["worker_starts"].items() if count}


def until_ready(operators: Operators, workers: int) -> None:
    def conditions() -> list[str]:
        return [each["condition"] for each in operators.status()["workers"]]

    operators.until(lambda: conditions() == ["serving"] * workers)


def test_each_worker_is_counted_by_why_it_was_started() -> None:
    with serve(*ADMIN) as server:
        operators = Operators(server)
        wait_all(server)
        assert starts(operators) == {"initial": 2}
        os.kill(who(server), signal.SIGKILL)
        operators.until(lambda: starts(operators) == {"initial": 2, "died": 1})
        until_ready(operators, 2)
        server.signal(signal.SIGHUP)
        server.wait_line("The reload is complete.")
        assert starts(operators) == {"initial": 2, "died": 1, "reload": 2}
        server.signal(signal.SIGTTIN)
        operators.until(lambda: starts(operators).get("added") == 1)
        until_ready(operators, 3)
        os.kill(who(server), signal.SIGTERM)
        operators.until(lambda: starts(operators).get("stopped") == 1)
        assert operators.samples()['bridgehead_worker_starts_total{reason="recycled"}'] == 0


def test_a_worker_that_is_succeeded_for_a_limit_is_counted_so() -> None:
    with serve(*ADMIN, "--limit-max-requests", "1") as server:
        operators = Operators(server)
        wait_all(server)
        who(server)
        operators.until(lambda: starts(operators).get("recycled", 0) >= 1)
        assert set(starts(operators)) == {"initial", "recycled"}


def test_a_request_that_its_worker_dies_of_and_the_step_that_it_was_in_are_known() -> None:
    with serve(*ADMIN, env={"RELEASE": "/nowhere/at/all"}) as server:
        operators = Operators(server)
        wait_all(server)
        assert operators.samples()["bridgehead_ready"] == 1
        with server.connect() as client:
            client.send(request("/block"))
            # It was noticed after a quarter of a second, and is longer by now.
            operators.until(lambda: any(each["longest"] > 1000 for each in operators.status()["blocking"]))
            [held] = [each for each in operators.status()["workers"] if each["loop"]["blocked_for"] > 0]
            sample = f'bridgehead_worker_ready{{worker="{held["place"]}"}}'
            operators.until(lambda: operators.samples()[sample] == 0)
            assert held["condition"] == "serving"
            os.kill(held["process"], signal.SIGKILL)
        operators.until(lambda: operators.samples()["bridgehead_requests_lost_total"] == 1)
        [place] = operators.status()["blocking"]
        assert (place["count"], place["longest"] > 1000) == (1, True)


def test_a_server_none_of_whose_workers_is_ready_says_so() -> None:
    with Server("health_app:app", *ADMIN) as server:
        operators = Operators(server)
        operators.until(lambda: operators.samples()["bridgehead_ready"] == 1)
        with server.connect() as client:
            client.send(request("/hold?seconds=8&how=python"))
            operators.until(lambda: operators.samples()["bridgehead_ready"] == 0)
            assert operators.samples()['bridgehead_worker_condition{worker="0",condition="serving"}'] == 1
            server.signal(signal.SIGKILL)
            server.wait_exit()


def test_a_probe_is_answered_though_as_many_connections_as_may_be_are_idle() -> None:
    with Server("framing_app:app", *ADMIN) as server:
        operators = Operators(server)
        with ExitStack() as idle:
            for _ in range(140):
                idle.enter_context(socket.create_connection(("127.0.0.1", operators.port)))
            for _ in range(20):
                assert operators.ask("/livez") == (200, "ok\n")
