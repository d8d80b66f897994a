"""What `receive` and `send` wait for is a future of asyncio's kind, resolved from the drain."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from harness import Server, request

NOT_SET = "InvalidStateError('Result is not set.',)"

FUTURES: dict[str, dict[str, Any]] = {
    "is-a-future": {
        "isfuture": True,
        "ensured": True,
        "loop": True,
        "done": False,
        "cancelled": False,
        "result": NOT_SET,
        "exception": NOT_SET,
    },
    "cancelling": {
        "told": [True, False],
        "at_once": [],
        "later": ["called"],
        "cancelled": True,
        "done": True,
        "result": "CancelledError('why',)",
        "exception": "CancelledError('why',)",
        "without": "CancelledError()",
    },
    "late-callback": {"at_once": [], "later": ["caller's", "given"]},
    "removing": {"removed": [3, 0], "broken": "ValueError('compared',)", "called": ["second"]},
    "waiting-on-futures": {
        "wait": [0, 1],
        "shield": "timed out",
        "gather": ["CancelledError", "slept"],
        "await": "cancelled('by its future',)",
        "task": "cancelled('by its task',), its future True",
    },
}


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("bridge_app:app", "--loop", loop, allow=["Traceback"]) as server:
        yield server


@pytest.mark.parametrize("what", FUTURES)
def test_the_future_behaves_as_asyncios_own(server: Server, what: str) -> None:
    assert server.ask(f"/future/{what}").json() == FUTURES[what]


def test_tasks_that_receive_can_be_waited_for_shielded_gathered_and_cancelled(server: Server) -> None:
    found = server.ask("/future/waiting").json()
    assert found.pop("gathered")[0].startswith("CancelledError")
    assert found == {"done": 0, "pending": 2, "shielded": False, "one": False}


def test_callbacks_run_in_the_drain_in_their_own_contexts_before_asyncios(server: Server, loop: str) -> None:
    with server.connect() as client:
        client.send(request("/resolved?name=resolved"))
        assert server.note("resolved-waits") is True
    assert server.note("resolved-order") == ["ours", "failing", "ours again", "asyncio's"]
    assert server.note("resolved-contexts") == ["given", "no task", "caller's"]
    callers = server.note("resolved-callers")
    if loop == "asyncio":
        # Called from where the loop calls the drain, and not by a handle of its own.
        assert callers == ["Bridge"]
    assert server.note("resolved-result") == [True, False, None, None]
    assert "marked by the test" in server.wait_line("marked by the test")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the first step is asyncio's own there")
def test_what_a_finalizer_schedules_while_a_task_is_made_is_not_taken_for_its_first_step(loop: str) -> None:
    with Server("bridge_app:app", "--loop", loop) as server, server.connect(timeout=10) as client:
        client.ask("/collect-while-registering")
        for _ in range(20):
            seen = client.ask("/finalizers").json()
        assert seen["dead"] >= 19
        assert seen["called"] >= seen["dead"]
