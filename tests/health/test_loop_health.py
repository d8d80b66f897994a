"""What is known of a loop: what holds it, for whom, what waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Server, request
from harness.processes import of_threads

from bridgehead import diagnostics
from bridgehead.slow_steps import SlowSteps

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn knows nothing of its loop"),
    pytest.mark.pairwise,
]

HELD = "The loop has been held for "
ASKS = """
import os
from bridgehead.diagnostics import snapshot


def say(when):
    now = snapshot()
    os.write(2, f"app: {when} with {now.running} requests and tasks: {now.tasks > 0}\\n".encode())


async def app(scope, receive, send):
    for when in ("startup", "shutdown"):
        await receive()
        say(when)
        await send({"type": f"lifespan.{when}.complete"})
"""
HOLDS = """
import asyncio
import os
import time
from bridgehead.diagnostics import snapshot


def load():
    time.sleep(0.6)


def save():
    time.sleep(0.6)


async def later():
    save()


async def app(scope, receive, send):
    await receive()
    load()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    [loaded] = snapshot().slowest
    told = (snapshot().slow_steps, loaded.place.split("(")[0], loaded.count, loaded.longest > 0.4)
    os.write(2, f"app: {told}\\n".encode())
    await asyncio.gather(later())
    await send({"type": "lifespan.shutdown.complete"})
"""


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


def test_a_step_of_a_task_in_which_middleware_goes_on_is_told_with_the_request(server: Server) -> None:
    assert server.ask("/hold-in-a-task?seconds=0.7").body == b"held"
    assert "in the request GET /hold-in-a-task" in server.wait_line("by hold_for_another() at ")
    [step] = [each for each in seen(server)["slowest"] if "hold_for_another" in each["place"]]
    assert step["request"] == "GET /hold-in-a-task"


@pytest.mark.parametrize(
    ("how", "function"), [("group", "hold_in_a_group"), ("gather", "hold_as_one_of_several")]
)
def test_a_step_of_a_task_for_which_a_handler_waits_is_told_with_the_request(
    server: Server, how: str, function: str
) -> None:
    assert server.ask(f"/hold-in-children?seconds=1.5&how={how}").body == b"held"
    assert "in the request GET /hold-in-children" in server.wait_line(f"by {function}() at ")
    [step] = [each for each in seen(server)["slowest"] if function in each["place"]]
    assert step["request"] == "GET /hold-in-children"


def test_a_step_that_holds_the_loop_is_told_with_its_requests_id_where_there_are_ids(loop: str) -> None:
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    with serve(loop, "--request-id", "--log-format", "json") as server:
        with server.connect() as client:
            client.ask("/hold?seconds=0.7", headers=[("x-request-id", "held-1"), ("traceparent", parent)])
        line = json.loads(server.wait_line("by sleep_in_python() at "))
        assert (line["request_id"], line["traceparent"]) == ("held-1", parent)
        assert "in the request GET /hold, whose id is held-1: " in line["message"]


def test_the_whole_length_of_a_slow_step_is_known_once_it_is_over_with_the_longest_request(loop: str) -> None:
    with serve(loop) as server:
        for target in ("/hold?seconds=0.5", "/hold?seconds=1.5&later=0.1", "/hold?seconds=0.6"):
            server.ask(target)
        while not (shown := seen(server))["slowest"] or shown["slowest"][0]["longest"] < 1.2:
            pass
        [step] = [each for each in shown["slowest"] if "sleep_in_python" in each["place"]]
        assert step["longest"] <= shown["longest_step"] + 0.001
        assert shown["longest_request"] == step["request"] == "GET /hold"
        assert "s so far by sleep_in_python() at " in server.stderr


@pytest.mark.parametrize("later", ["", "&later=0.05"])
def test_who_asks_as_soon_as_a_slow_step_is_over_is_told_of_it_with_its_length_and_request(
    loop: str, later: str
) -> None:
    """In the first step, which the bridge takes, and resumed by asyncio."""
    with serve(loop) as server, server.connect() as holds, server.connect() as asks:
        holds.send(request(f"/hold?seconds=0.7{later}"))
        server.wait_line("by sleep_in_python() at ")
        asks.send(request("/snapshot"))
        shown = asks.read_response().json()
        [step] = [each for each in shown["slowest"] if "sleep_in_python" in each["place"]]
        assert shown["longest_request"] == step["request"] == "GET /hold"
        assert step["longest"] == pytest.approx(shown["longest_step"], abs=0.001)
        assert step["count"] == 1


def test_each_event_of_the_bridges_that_is_too_long_is_counted_though_it_is_shorter_than_a_tick(
    loop: str,
) -> None:
    with serve(loop, "--slow-step", "10ms") as server:
        before = seen(server)["slow_steps"]
        for _ in range(20):
            server.ask("/hold?seconds=0.02")
        assert seen(server)["slow_steps"] >= before + 20


def test_the_longest_time_of_a_place_has_the_request_for_which_it_was_or_none() -> None:
    with asyncio.Runner() as runner:
        steps = SlowSteps(runner.get_loop(), among_others=False)
        told = steps.tell(0.3, "Python code", ("shared() at app.py:1", "GET /a"))
        steps.over(0.4, "Python code", told)
        assert [(each.longest, each.request) for each in steps.slowest()] == [(0.4, "GET /a")]
        told = steps.tell(0.3, "Python code", ("shared() at app.py:1", ""))
        steps.over(2.0, "Python code", told)
        [place] = steps.slowest()
        assert (place.count, place.longest, place.request) == (2, 2.0, "")
        told = steps.tell(0.3, "Python code", ("shared() at app.py:1", "GET /b"))
        steps.tell(0.3, "unknown", None)
        steps.over(3.0, "Python code", told)
        slowest = steps.slowest()[0]
        assert (slowest.longest, slowest.request) == (3.0, "GET /b")


def test_a_step_that_had_gone_on_when_its_place_was_seen_is_told_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with asyncio.Runner() as runner:
        steps = SlowSteps(runner.get_loop(), among_others=False)
        for place, later in (("waits() at app.py:1", False), ("sleeps() at app.py:2", True)):
            steps.tell(0.3, "a wait for the GIL", (place, ""), later)
    # Handed on to another logger a record comes twice, where that is listened to.
    told = [*dict.fromkeys(each.getMessage() for each in caplog.records)]
    assert "by waits() at app.py:1: " in told[0]
    assert "by sleeps() at app.py:2 or just before it: " in told[1]


def test_a_loop_that_had_gone_on_when_it_was_seen_to_call_nothing_is_not_said_to_call_something() -> None:
    with asyncio.Runner() as runner:
        steps = SlowSteps(runner.get_loop(), among_others=False)
        nameless = ("a callback that is no Python code", "")
        for later in (False, True):
            steps.tell(0.3, "a C call that holds the GIL", nameless, later)
        places = {each.place for each in steps.slowest()}
    assert places == {nameless[0], "something that was over before it could be looked at"}


def test_what_holds_the_loop_while_no_request_runs_is_seen_counted_and_named(loop: str) -> None:
    with serve(loop) as server:
        server.ask("/background?seconds=1.5")
        # Nobody asks anything meanwhile.
        server.wait_line("by hold_alone() at ")
        shown = seen(server)
        while not shown["slowest"] or shown["slowest"][0]["longest"] < 1.0:
            shown = seen(server)
        assert shown["slow_steps"] == 1
        [step] = shown["slowest"]
        assert ("hold_alone() at " in step["place"], step["request"]) == (True, "")


def test_how_many_threads_there_may_be_is_known_before_the_first() -> None:
    async def before_and_after() -> tuple[diagnostics.Executor | None, diagnostics.Executor | None]:
        loop = asyncio.get_running_loop()
        before = diagnostics.executor_of(loop)
        await asyncio.to_thread(int)
        return before, diagnostics.executor_of(loop)

    before, after = asyncio.run(before_and_after())
    assert before is not None
    assert after is not None
    assert (before.threads, before.most) == (0, after.most)


def test_what_a_loop_of_somebody_elses_hides_of_its_executor_is_not_made_up() -> None:
    uvloop = pytest.importorskip("uvloop")
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    assert diagnostics.executor_of(loop) is None
    loop.close()


def test_an_application_may_ask_in_its_startup_and_its_shutdown(loop: str, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    with Server("asks:app", "--loop", loop, cwd=tmp_path) as server:
        server.stop()
        for when in ("startup", "shutdown"):
            assert f"app: {when} with 0 requests and tasks: True" in server.stderr


def test_what_holds_the_loop_in_startup_and_shutdown_is_told_and_counted_with_its_whole_length(
    loop: str, tmp_path: Path
) -> None:
    (tmp_path / "holds.py").write_text(HOLDS)
    with Server("holds:app", "--loop", loop, cwd=tmp_path) as server:
        server.stop()
        told = [line.partition(HELD)[2] for line in server.stderr.splitlines() if HELD in line]
        assert len(told) == 2, server.stderr
        assert "by load() at holds.py:9, in the application's startup: a blocking system call" in told[0]
        assert "by save() at holds.py:13, in the application's shutdown: a blocking system call" in told[1]
        assert "app: (1, 'load', 1, True)" in server.stderr


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
        # Those who came first would have been answered, and nobody would wait.
        server.wait_line("has the permit")
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


def test_asyncios_debug_mode_tells_of_slow_callbacks_by_their_requests_and_of_coroutines_that_nobody_awaited(
    loop: str,
) -> None:
    allowed = ["was never awaited"]
    with serve(loop, "--loop-debug", env={"PYTHONWARNINGS": "default"}, allow=allowed) as server:
        server.ask("/hold?seconds=0.3")
        server.wait_line("Executing <")
        server.ask("/hold?seconds=0.3&later=0.05")
        server.ask("/hello")
        server.ask("/forget")
        server.wait_line("was never awaited")
        said = [line for line in server.stderr.splitlines() if "Executing <" in line]
        # In its first step, which the bridge takes, and resumed by asyncio.
        assert len([line for line in said if "coro=<answer to GET /hold()" in line]) == 2, server.stderr


def test_asyncios_debug_mode_names_the_request_that_goes_on_when_its_body_has_come(loop: str) -> None:
    with serve(loop, "--loop-debug", "--slow-step", "0") as server, server.connect() as client:
        for times, size in enumerate((3, 200_000, 2_000_000), start=1):
            head = f"POST /read-and-hold?seconds=0.3 HTTP/1.1\r\nHost: test\r\nContent-Length: {size}\r\n\r\n"
            client.send(head.encode())
            server.wait_line("reads", count=times)
            client.send(bytes(size))
            assert client.read_response().body == b"held"
            server.wait_line("coro=<answer to POST /read-and-hold()", count=times)


def test_who_asks_where_no_server_serves_is_told_so() -> None:
    with pytest.raises(RuntimeError, match="no server of Bridgehead's serves here"):
        diagnostics.snapshot()


def test_a_step_that_holds_a_loop_which_has_rested_for_long_is_told_though_nobody_asks(loop: str) -> None:
    with serve(loop) as server:
        # By then it is looked at more rarely.
        server.ask("/background?after=5&seconds=0.9")
        assert HELD in server.wait_line("by hold_alone() at ")
