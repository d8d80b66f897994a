"""Where asyncio's private names are others, or mean something else, asyncio does what Rust would do."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from harness import HAS_FUSED, Server

from bridgehead import log, loop_trial, private_names, reentrant, task_trial
from bridgehead.private_names import TABLE

LOOP_KEYS = ["ready", "scheduled", "debug", "stopping"]
WATCH_KEYS = ["add_reader", "context"]
TASK_KEYS = ["coroutine", "waiter", "must_cancel", "enter_task", "leave_task", "blocking", "loop_of_future"]
SET_KEYS = ["all_tasks", "references", "pending_removals", "iterating", "commit_removals"]
# Read only before 3.12.
CURRENT_KEYS = ["current_tasks"]
HAS_REGISTER = sys.version_info < (3, 12)

STANDS_BACK = "Requests run as asyncio's own tasks"
HAS_THREAD = "The network has a thread of its own, since it cannot be turned under asyncio"
BY_PYTHON = "Tasks are registered by Python code"

Rename = Callable[[str, str], None]


@pytest.fixture
def rename(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rename]:
    """asyncio itself needs its names, so it is the table that has others."""
    private_names.look_up.cache_clear()
    yield lambda key, name: monkeypatch.setitem(TABLE, key, (TABLE[key][0], name))
    private_names.look_up.cache_clear()


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(log.logger(), "warning", lambda text, *values: lines.append(text % values))
    return lines


def test_each_name_of_the_table_is_one_that_is_tried_here() -> None:
    assert sorted(TABLE) == sorted([*LOOP_KEYS, *WATCH_KEYS, *TASK_KEYS, *SET_KEYS, *CURRENT_KEYS])


def test_this_python_has_them_all(warned: list[str]) -> None:
    assert loop_trial.turnable() is not None
    assert (loop_trial.tasks_register() is not None) is HAS_REGISTER
    assert asyncio.run(task_trial.choose("rust")) is not None
    assert warned == []


@pytest.mark.parametrize("key", TASK_KEYS)
def test_without_a_name_of_tasks_requests_run_as_asyncios(
    key: str, rename: Rename, warned: list[str]
) -> None:
    rename(key, "_gone")
    assert asyncio.run(task_trial.choose("rust")) is None
    assert warned == [f"{STANDS_BACK}, since ours do not work here: {TABLE[key][0]} has no _gone."]


@pytest.mark.parametrize(("key", "name"), [("blocking", "_callbacks"), ("loop_of_future", "_state")])
def test_a_name_of_a_future_that_means_something_else_is_not_relied_on(
    key: str, name: str, rename: Rename, warned: list[str]
) -> None:
    rename(key, name)
    assert asyncio.run(task_trial.choose("rust")) is None
    assert len(warned) == 1
    assert warned[0].startswith(STANDS_BACK)


@pytest.mark.parametrize("key", LOOP_KEYS)
@pytest.mark.parametrize("name", ["_gone", "_closed", "_clock_resolution", "_asyncgens", "_ready"])
def test_without_a_name_of_loops_or_with_another_none_is_turned(
    key: str, name: str, rename: Rename, warned: list[str]
) -> None:
    if TABLE[key][1] == name:
        pytest.skip("that is its name")
    rename(key, name)
    assert loop_trial.turnable() is None
    assert len(warned) == 1
    assert warned[0].startswith(HAS_THREAD)


@pytest.mark.parametrize("key", WATCH_KEYS)
@pytest.mark.parametrize("name", ["_gone", "_args", "time"])
def test_without_a_name_of_a_descriptors_handle_its_callback_is_an_ordinary_one(
    key: str, name: str, rename: Rename, warned: list[str]
) -> None:
    rename(key, name)
    called: list[None] = []
    ours, theirs = socket.socketpair()
    with ours, theirs, closing(asyncio.new_event_loop()) as loop:
        reentrant.watch(loop, ours.fileno(), lambda: called.append(loop.stop()))
        theirs.send(b"x")
        loop.run_forever()
    assert called
    assert len(warned) == 1
    assert warned[0].startswith("A handler that turns the loop itself holds up the others")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on asyncio is asked")
@pytest.mark.parametrize("key", CURRENT_KEYS)
@pytest.mark.parametrize("name", ["_gone", "_all_tasks", "__dict__"])
def test_without_the_current_tasks_or_with_others_no_loop_is_turned(
    key: str, name: str, rename: Rename, warned: list[str]
) -> None:
    rename(key, name)
    assert loop_trial.turnable() is None
    assert len(warned) == 1
    assert warned[0].startswith(HAS_THREAD)


@pytest.mark.skipif(not HAS_REGISTER, reason="from 3.12 on the set of tasks is left alone")
@pytest.mark.parametrize("key", SET_KEYS)
def test_without_a_name_of_the_set_of_tasks_it_is_left_alone(
    key: str, rename: Rename, warned: list[str]
) -> None:
    rename(key, "_gone")
    assert loop_trial.tasks_register() is None
    assert warned == [f"{BY_PYTHON}, which is slower: {TABLE[key][0]} has no _gone."]


@pytest.mark.skipif(not HAS_REGISTER, reason="from 3.12 on the set of tasks is left alone")
def test_a_set_of_tasks_that_somebody_else_has_changed_is_left_to_them(
    warned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: weakref.WeakSet[Any] = weakref.WeakSet()
    monkeypatch.setattr(asyncio.tasks, "_all_tasks", tasks)
    private_names.look_up.cache_clear()
    assert loop_trial.tasks_register() is not None
    monkeypatch.setattr(tasks, "add", print)
    assert loop_trial.tasks_register() is None
    private_names.look_up.cache_clear()
    assert warned == []


def test_the_trials_leave_nothing_open(warned: list[str]) -> None:
    # A loop that is not closed warns as it is collected, which is an error here.
    loop_trial.turnable()
    gc.collect()
    assert warned == []


@pytest.mark.skipif(not HAS_FUSED, reason="the fused runtime is Linux's")
@pytest.mark.parametrize("key", ["ready", "stopping"])
def test_a_server_without_a_name_of_loops_has_a_thread_for_its_network_and_says_so_once(key: str) -> None:
    with Server("bridge_app:app", "--loop", "fused", env={"RENAMED": key}) as server:
        for _ in range(3):
            assert server.ask("/mixed/spawn", method="POST", body=b"x").body == b"spawn"
        assert server.has_thread("bridgehead-net")
        server.stop()
        assert server.stderr.count(HAS_THREAD) == 1
        assert server.stderr.count("WARNING") == 1


def test_a_server_without_a_single_name_serves(loop: str) -> None:
    keys = " ".join(TABLE)
    with Server("bridge_app:app", "--loop", loop, env={"RENAMED": keys}) as server:
        for target in ("/mixed/spawn", "/mixed/sleep", "/mixed/group"):
            assert server.ask(target, method="POST", body=b"x").body == target.rpartition("/")[2].encode()
        assert server.ask("/task-type").json()["plain"]
        server.stop()
        assert server.stderr.count(STANDS_BACK) == loop.endswith("-rust")
        assert server.stderr.count(HAS_THREAD) == (loop in ("fused", "fused-rust"))
        assert server.stderr.count(BY_PYTHON) == HAS_REGISTER
