"""What an application left running is told to end at a stop, waited for, and named if it does not end."""

from __future__ import annotations

import re

import pytest
from harness import UVICORN, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn leaves them to asyncio")

ENDLESS = "Cancelled at the stop, but did not end: "


def serve(loop: str, *options: str, **settings: object) -> Server:
    return Server("left_app:app", "--loop", loop, *options, **settings)  # type: ignore[arg-type]


def test_a_task_that_refuses_to_end_is_named_with_its_place(loop: str) -> None:
    with serve(loop) as server:
        server.ask("/leave?kind=refuse")
        server.stop()
        said = server.stderr
        assert "app: refused" in said
        [line] = [line for line in said.splitlines() if ENDLESS in line]
        assert re.search(r"the task 'refuse 0', in refuse\(\) at \S*left_app\.py:\d+\.$", line)
        assert "was destroyed" not in said


def test_what_ends_when_told_is_not_spoken_of_and_what_it_begins_ends_too(loop: str) -> None:
    with serve(loop) as server:
        server.ask("/leave?kind=clean_up")
        server.ask("/leave?kind=flush")
        server.stop()
        assert server.stderr.count("app: flushed") == 2
        assert ENDLESS not in server.stderr


def test_of_many_that_refuse_some_are_named_and_the_others_counted(loop: str) -> None:
    with serve(loop) as server:
        server.ask("/leave?kind=refuse&count=50")
        server.stop()
        assert server.stderr.count(ENDLESS) == 20
        assert "Nor did 30 more tasks." in server.stderr


def test_a_task_that_fails_as_it_ends_is_told_with_its_traceback(loop: str) -> None:
    with serve(loop, allow=["Traceback"]) as server:
        server.ask("/leave?kind=fail")
        server.stop()
        assert "RuntimeError: failed at the end" in server.stderr
        assert ENDLESS not in server.stderr


def test_a_request_that_refuses_to_end_is_named_by_its_method_and_path(loop: str) -> None:
    with serve(loop, "--timeout-graceful-shutdown", "1") as server:
        client = server.connect()
        client.send(request("/refuse/%0Ame?" + "x" * 300))
        server.wait_line("app: began")
        server.stop()
        [line] = [line for line in server.stderr.splitlines() if ENDLESS in line]
        assert "the request GET /refuse/\\nme, in refuse() at " in line
