"""What is known of a loop: what holds it, for whom, what waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from harness import UVICORN, Server, request
from harness.processes import of_threads

from bridgehead import diagnostics

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn knows nothing of its loop"),
    pytest.mark.pairwise,
]

HELD = "The loop has been held for "


def serve(loop: str, *options: str, **settings: Any) -> Server:
    return Server("health_app:app", "--loop", loop, "--no-access-log", *options, **settings)


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with serve(loop) as server:
        yield server


def seen(server: Server) -> dict[str, Any]:
    shown: dict[str, Any] = server.ask("/snapshot").json()
    return shown


def seen_with(server: Server, name: str, wanted: object) -> dict[str, Any]:
    """What is seen once it says so: some figures are sampled."""
    while (shown := seen(server))[name] != wanted:
        pass
    return shown


def test_a_step_that_holds_the_loop_is_named_while_it_does_with_its_request(server: Server) -> None:
    before = seen(server)["slow_steps"]
    client = server.connect()
    client.send(request("/hold?seconds=0.7"))
    server.wait_line("by sleep_in_python() at ")
    assert client.read_response().body == b"held"
    [line] = [line for line in server.stderr.splitlines() if "by sleep_in_python() at " in line]
    assert HELD in line
    assert "in the request GET /hold" in line
    shown = seen(server)
    assert shown["slow_steps"] == before + 1
    assert shown["longest_step"] >= 0.7
    [step] = [each for each in shown["slowest"] if "sleep_in_python" in each["place"]]
    assert (step["request"], step["count"]) == ("GET /hold", 1)
    assert step["cause"].startswith("a blocking system call (")
    server.ask("/hold?seconds=0.7")
    assert seen(server)["slow_steps"] == before + 2
    [step] = [each for each in seen(server)["slowest"] if "sleep_in_python" in each["place"]]
    assert step["count"] == 2
    assert server.stderr.count("by sleep_in_python() at ") == 1, "a place is told of once"


def test_a_handler_that_asyncio_resumes_is_seen_to_hold_the_loop_as_well(server: Server) -> None:
    before = seen(server)["slow_steps"]
    server.ask("/hold?seconds=0.9&later=0.2")
    assert seen(server)["slow_steps"] == before + 1


def test_a_call_that_keeps_pythons_lock_is_told_apart_from_one_that_does_not(server: Server) -> None:
    server.ask("/hold?seconds=0.8&how=lock")
    server.wait_line("a C call that holds the GIL")
    assert seen(server)["longest_gil_wait"] > 0.2


def test_requests_tasks_threads_and_gates_are_counted(server: Server) -> None:
    before = seen_with(server, "running", 1)
    clients = [server.connect() for _ in range(3)]
    for client in clients:
        client.send(request("/park?until=counted"))
        assert server.note("parked") is True
    shown = seen(server)
    # Who asks is one of them.
    assert (shown["running"], shown["queued"], shown["arrived"]) == (4, 0, 0)
    assert shown["tasks"] == before["tasks"] + 3
    assert shown["gates"]["pool"]["slots"] == 3
    server.ask("/ring/counted")
    assert [client.read_response().body for client in clients] == [b"rung"] * 3
    assert server.ask("/thread").body == b"worked"
    executor = seen(server)["executor"]
    assert (executor["queued"], executor["threads"]) == (0, 1)
    assert executor["most"] > 1


def test_requests_that_wait_for_a_permit_are_counted(loop: str) -> None:
    with serve(loop, "--limit-concurrency", "1", "--timeout-queue", "20") as server:
        looks, *wait = [server.connect() for _ in range(3)]
        looks.send(request("/until-queued?count=2"))
        for client in wait:
            client.send(request("/hello"))
        assert looks.read_response().json()["queued"] == 2
        assert [client.read_response().body for client in wait] == [b"hello"] * 2


def test_without_a_limit_for_steps_nobody_looks(loop: str) -> None:
    with serve(loop, "--slow-step", "0") as server:
        server.ask("/hold?seconds=0.5")
        names = of_threads(server.pid, "comm").values()
        assert not [name for name in names if name.startswith(("bridgehead-heal", "bridgehead-cens"))]
        assert seen(server)["slow_steps"] == 0
        assert HELD not in server.stderr


def test_asyncios_debug_mode_tells_of_slow_callbacks_and_of_coroutines_that_nobody_awaited(loop: str) -> None:
    allowed = ["was never awaited"]
    with serve(loop, "--loop-debug", env={"PYTHONWARNINGS": "default"}, allow=allowed) as server:
        server.ask("/hold?seconds=0.3")
        server.wait_line("Executing <")
        server.ask("/hold?seconds=0.3&later=0.05")
        server.ask("/forget")
        server.wait_line("was never awaited")
        said = [line for line in server.stderr.splitlines() if "Executing <" in line]
        assert len(said) >= 2


def test_who_asks_where_no_server_serves_is_told_so() -> None:
    with pytest.raises(RuntimeError, match="no server of Bridgehead's serves here"):
        diagnostics.snapshot()
