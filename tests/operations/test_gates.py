"""Gates of the application's that have a name, as operators see them."""

from __future__ import annotations

import os
import signal

import pytest
from harness import UVICORN, Server, request
from harness.workers import serve, wait_all
from operators import Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

ADMIN = ("--admin", "127.0.0.1:0")


def stands(operators: Operators, gate: str) -> tuple[float, ...]:
    """Slots, who is inside and who waits, of all workers together."""
    seen = operators.samples()
    names = (f"bridgehead_gate_{gauge}{{" for gauge in ("slots", "running", "waiting"))
    label = f'gate="{gate}"}}'
    return tuple(
        sum(value for each, value in seen.items() if each.startswith(name) and each.endswith(label))
        for name in names
    )


def entries(operators: Operators, gate: str) -> dict[str, float]:
    """What became of how many."""
    seen = operators.samples()
    outcomes = ("admitted", "full", "late", "left")
    return {
        each: seen[f'bridgehead_gate_entries_total{{gate="{gate}",outcome="{each}"}}'] for each in outcomes
    }


def test_a_gate_with_a_name_is_shown_as_it_stands_with_who_came_in_and_who_did_not(loop: str) -> None:
    with Server("gate_app:app", "--loop", loop, *ADMIN) as server:
        operators = Operators(server)
        assert stands(operators, "pool") == (1, 0, 0)
        with server.connect() as first, server.connect() as second, server.connect() as third:
            first.send(request("/inside"))
            operators.until(lambda: stands(operators, "pool") == (1, 1, 0))
            second.send(request("/inside"))
            operators.until(lambda: stands(operators, "pool") == (1, 1, 1))
            assert third.ask("/inside").status == 503
            third.send(request("/ring/leave"))
            assert (first.read_response().status, second.read_response().status) == (200, 200)
        operators.until(lambda: stands(operators, "pool") == (1, 0, 0))
        assert entries(operators, "pool") == {"admitted": 2, "full": 1, "late": 0, "left": 0}
        seen = operators.samples()
        assert seen['bridgehead_gate_slots{worker="0",gate="pool"}'] == 1
        # Who found it full has not waited.
        assert seen['bridgehead_gate_wait_seconds_count{gate="pool"}'] == 2
        [pool] = operators.status()["gates"]
        assert (pool["name"], pool["slots"], pool["admitted"], pool["full"]) == ("pool", 1, 2, 1)
        assert pool["wait"]["count"] == 2


def test_what_the_gates_of_a_killed_worker_counted_is_kept_and_how_they_stood_is_not() -> None:
    counted = {"admitted": 1, "full": 1, "late": 1, "left": 0}
    with serve(*ADMIN, target="gate_app:app") as server:
        operators = Operators(server)
        wait_all(server)
        assert stands(operators, "pool") == (2, 0, 0)
        killed = int(server.ask("/crowd").body)
        assert entries(operators, "mail") == counted
        assert stands(operators, "mail") == (1, 0, 0)
        os.kill(killed, signal.SIGKILL)
        operators.until(lambda: (operators.status()["last_gone"] or {}).get("process") == killed)
        operators.until(lambda: stands(operators, "pool") == (2, 0, 0))
        assert entries(operators, "mail") == counted
        assert stands(operators, "mail") == (0, 0, 0)
        assert operators.samples()['bridgehead_gate_wait_seconds_count{gate="mail"}'] == 2


def test_gates_of_one_name_are_shown_together_until_they_are_gone_and_more_names_than_16_as_others() -> None:
    with Server("gate_app:app", *ADMIN) as server:
        operators = Operators(server)
        server.ask("/make?name=pool&slots=4")  # takes the place of the one of a slot
        operators.until(lambda: stands(operators, "pool") == (4, 0, 0))
        for number in range(20):
            server.ask(f"/make?name=gate-{number}&slots=3")
        names = [each["name"] for each in operators.status()["gates"]]
        assert names == sorted(["_OTHER", "pool", *(f"gate-{number}" for number in range(15))])
        assert (stands(operators, "_OTHER"), stands(operators, "gate-14")) == ((15, 0, 0), (3, 0, 0))
        server.ask("/drop?name=gate-19")
        operators.until(lambda: stands(operators, "_OTHER") == (12, 0, 0))


def test_what_a_forked_child_does_to_gates_is_its_own() -> None:
    with Server("gate_app:app", *ADMIN) as server:
        operators = Operators(server)
        assert server.ask("/fork").status == 200
        assert [each["name"] for each in operators.status()["gates"]] == ["pool"]
        assert stands(operators, "pool") == (1, 0, 0)
        assert entries(operators, "pool") == {"admitted": 0, "full": 0, "late": 0, "left": 0}
