"""What an application left running is told to end at a stop, waited for, and named if it does not end."""

from __future__ import annotations

import re
from signal import SIGTERM

import pytest
from harness import UVICORN, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn leaves them to asyncio")

ENDLESS = "Cancelled at the stop, but did not end: "
OVERDUE = "did not stop within 4 s of the signal: "


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
        # Nothing is said of an end before it is there.
        assert said.index(line) < said.index("Finished server process")


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


def test_a_task_that_was_begun_in_the_last_moment_is_named_with_its_place_as_well(loop: str) -> None:
    with serve(loop) as server:
        server.ask("/leave?kind=breed")
        server.stop()
        lines = [line for line in server.stderr.splitlines() if ENDLESS in line]
        assert lines
        assert all("the task 'another', in breed() at " in line for line in lines)


def overdue(server: Server) -> str:
    """Why the process was ended from outside its loop."""
    server.signal(SIGTERM)
    assert server.wait_exit() == 1
    [line] = [line for line in server.stderr.splitlines() if OVERDUE in line]
    return line.partition(OVERDUE)[2].removesuffix(". Ending the process.")


def test_a_task_that_blocks_as_it_is_cancelled_is_named_when_the_process_is_ended(loop: str) -> None:
    with serve(loop, "--timeout-graceful-shutdown", "1") as server:
        server.ask("/leave?kind=block")
        reason = overdue(server)
        wanted = r"the task 'block 0' blocks the event loop, in sleep_in_python\(\) at \S*left_app\.py:\d+"
        assert re.fullmatch(wanted, reason)
        assert "Finished server process" not in server.stderr


def test_a_task_that_blocks_with_pythons_lock_is_told_from_one_that_does_not(loop: str) -> None:
    with serve(loop, "--timeout-graceful-shutdown", "1") as server:
        server.ask("/leave?kind=keep_the_lock")
        assert overdue(server) == "a call that does not let go of Python's lock blocks the event loop"


def test_a_thread_that_outlives_the_stop_is_named_and_the_loop_not_blamed(loop: str) -> None:
    with serve(loop, "--timeout-graceful-shutdown", "1") as server:
        server.ask("/thread")
        reason = overdue(server)
        assert reason.startswith(
            "the event loop is free, but waits for threads that do not end: 'asyncio_0', in "
        )
        assert "sleep_in_python() at " in reason
        assert reason.count("', in ") == 1, "nobody else is blamed"


def test_what_a_worker_has_left_has_the_rest_of_the_time_as_in_one_process(loop: str) -> None:
    with serve(loop, "--workers", "2") as server:
        server.ask("/leave?kind=take_three_seconds")
        server.signal(SIGTERM)
        assert server.wait_exit(20) == 0
        assert "app: took three seconds" in server.stderr
        assert "did not end in time" not in server.stderr
