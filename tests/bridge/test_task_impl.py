"""`--task-impl`: what runs a request's coroutine, and what happens where ours cannot."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref

import pytest
from harness import Server

from bridgehead import task_trial
from bridgehead._native import Driver, Wait
from bridgehead.private_names import task_names
from bridgehead.request_task import RequestTask

STANDS_BACK = "Requests run as asyncio's own tasks"


def test_a_request_runs_under_the_kind_of_task_that_is_asked_for(loop: str) -> None:
    ours = loop.endswith("-rust")
    with Server("bridge_app:app", "--loop", loop) as server:
        assert server.ask("/task-type").json() == {"plain": not ours, "a task": True, "named": "Task"}
        assert STANDS_BACK not in server.stderr


@pytest.mark.parametrize("name", ["_enter_task", "_leave_task"])
def test_where_a_private_name_is_gone_asyncios_tasks_run_and_one_warning_says_so(name: str) -> None:
    with Server("bridge_app:app", "--task-impl", "rust", env={"WITHOUT": name}) as server:
        for _ in range(3):
            assert server.ask("/mixed/spawn", method="POST", body=b"x").body == b"spawn"
        assert server.ask("/task-type").json()["plain"]
        server.stop()
        assert server.stderr.count(STANDS_BACK) == 1
        assert server.stderr.count("WARNING") == 1


@pytest.mark.parametrize("name", ["_enter_task", "_leave_task"])
def test_a_private_name_that_means_something_else_is_not_relied_on(name: str) -> None:
    with Server("bridge_app:app", "--task-impl", "rust", env={"CHANGED": name}) as server:
        assert server.ask("/task-type").json()["plain"]
        server.stop()
        assert server.stderr.count(STANDS_BACK) == 1


def test_the_trial_waits_for_a_future_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asyncio.run(task_trial.choose("rust")) is not None

    class NeverResolved(Wait):
        def resolve(self) -> None:
            """Nobody who waits is called."""

    monkeypatch.setattr(task_trial, "Wait", NeverResolved)
    assert asyncio.run(task_trial.choose("rust")) is None


@pytest.mark.parametrize("late", ["", "yes"])
def test_a_future_that_refuses_to_be_waited_for_raises_in_the_handler_and_is_answered(late: str) -> None:
    """Under asyncio's own task the request would wait for ever."""
    with Server("bridge_app:app", "--task-impl", "rust", allow=["Traceback"]) as server:
        assert server.ask(f"/await-what-refuses?late={late}").status == 500
        assert server.note("refused") == "refused by the test"
        server.wait_line("RuntimeError: refused by the test")


def test_a_trace_has_a_line_for_each_drive() -> None:
    with Server("bridge_app:app", "--task-impl", "rust", env={"BRIDGEHEAD_TRACE": "drive"}) as server:
        assert server.ask("/mixed/spawn").body == b"spawn"
        assert server.ask("/hello?" + "x" * 5000).status == 200
        lines = [server.wait_line("of request", count=count) for count in (1, 2, 3)]
    # One behind the other, so that whatever the first had is free again.
    assert [line.partition("of request ")[2].partition(" ")[0] for line in lines] == ["1", "1", "2"]
    assert "(GET /mixed/spawn): steps 1, yielded _GatheringFuture, waits" in lines[0]
    assert "(GET /mixed/spawn): steps 1, yielded nothing, returned" in lines[1]
    assert "(GET /hello): steps 1, yielded nothing, returned" in lines[2]


def test_a_trace_that_shows_nothing_says_why() -> None:
    with Server("bridge_app:app", env={"BRIDGEHEAD_TRACE": "drive,dives"}) as server:
        server.wait_line("BRIDGEHEAD_TRACE=drive shows nothing")
        server.wait_line("BRIDGEHEAD_TRACE=dives traces nothing; there is drive")


def test_a_task_that_waits_for_what_nobody_else_has_is_collected() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    async def leave() -> weakref.ref[asyncio.Task[None]]:
        driver, context = Driver(asyncio.get_running_loop(), task_names()), contextvars.copy_context()
        task: asyncio.Task[None] = RequestTask(driver.park(wait(), context), context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return weakref.ref(task)

    async def count() -> int:
        # More than one: what the first leaves may be used again.
        left = [await leave() for _ in range(5)]
        gc.collect()
        return sum(reference() is not None for reference in left)

    assert asyncio.run(count()) == 0
