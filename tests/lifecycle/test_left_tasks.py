"""What an application left running is told to end at a stop, waited for, and named if it does not end."""

from __future__ import annotations

import asyncio
import re
import sys
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest
from harness import UVICORN, Server, request
from harness.server import STARTUP_SECONDS
from harness.workers import serve as workers

from bridgehead import left_tasks
from bridgehead.patience import LEFT_TASKS, for_left_tasks
from bridgehead.server import Server as InProcess
from bridgehead.server_config import Config

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn leaves them to asyncio")

ENDLESS = "Cancelled at the stop, but did not end: "
UNCLOSED = "Did not close at the stop, and is cancelled: the asynchronous generator "
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


def test_of_many_that_refuse_in_one_place_the_first_is_named_and_the_others_counted(loop: str) -> None:
    with serve(loop) as server:
        server.ask("/leave?kind=refuse&count=50")
        server.ask("/leave?kind=hang_at_the_end&count=3")
        server.stop()
        lines = [line for line in server.stderr.splitlines() if ENDLESS in line]
        [line] = [line for line in lines if "'refuse " in line]
        assert re.search(
            r"the task 'refuse 0', in refuse\(\) at \S*left_app\.py:\d+, and 49 more of that place\.$", line
        )
        [line] = [line for line in server.stderr.splitlines() if UNCLOSED in line]
        assert re.search(r"hang_at_the_end\(\) at \S*left_app\.py:\d+, and 2 more of that place\.$", line)


def test_each_that_refuses_is_named_whose_name_or_place_is_another(loop: str) -> None:
    with serve(loop) as server:
        kinds = [chr(letter) * 3 for letter in range(ord("a"), ord("z") + 1)]
        for name in kinds:
            server.ask(f"/leave?kind=refuse&count=2&name={name}")
        server.ask("/leave?kind=refuse_elsewhere&name=aaa")
        server.stop()
        named = re.findall(rf"{ENDLESS}the task '(\w+) 0', in (\w+)\(\) at \S+:\d+(.*)\.\n", server.stderr)
        alone = ("aaa", "refuse_elsewhere", "")
        assert sorted(named) == sorted(
            [alone, *((name, "refuse", ", and 1 more of that place") for name in kinds)]
        )


def test_a_task_that_fails_as_it_ends_is_told_with_its_traceback(loop: str) -> None:
    with serve(loop, allow=["Traceback"]) as server:
        server.ask("/leave?kind=fail")
        server.stop()
        assert "RuntimeError: failed at the end" in server.stderr
        assert ENDLESS not in server.stderr


def test_tasks_that_would_end_the_process_as_they_end_are_named_and_the_others_have_their_time(
    loop: str,
) -> None:
    with serve(loop) as server:
        for kind in ("leave_the_process", "clean_up_in_turns", "interrupt", "leave_the_process", "refuse"):
            server.ask(f"/leave?kind={kind}")
        server.stop()
        said = server.stderr
        assert "app: cleaned up" in said
        assert len([line for line in said.splitlines() if f"{ENDLESS}the task 'refuse 0'" in line]) == 1
        exits = re.findall(
            r"raised (\S+), and the stop went on: (.*), in (\w+)\(\) at \S*left_app\.py:\d+\.", said
        )
        left = ("SystemExit(3)", "the task 'leave_the_process 0'", "leave_the_process")
        assert sorted(exits) == [("KeyboardInterrupt()", "the task 'interrupt 0'", "interrupt"), left, left]


def test_generators_that_do_not_close_are_named_with_their_places(loop: str) -> None:
    with serve(loop) as server:
        server.ask("/leave?kind=hang_at_the_end")
        server.ask("/leave?kind=refuse_at_the_end")
        server.stop()
        said = server.stderr
        open_ones = re.findall(rf"{UNCLOSED}(\w+)\(\) at \S*left_app\.py:\d+\.", said)
        assert sorted(open_ones) == ["hang_at_the_end", "refuse"]
        # One of them has heard that it is cancelled as well; nobody else is blamed.
        [line] = [line for line in said.splitlines() if ENDLESS in line]
        assert re.search(r", in refuse\(\) at \S*left_app\.py:\d+\.$", line)
        assert "was destroyed" not in said


def test_what_generators_begin_as_they_close_is_ended_too(loop: str) -> None:
    with serve(loop) as server:
        server.ask("/leave?kind=begin_at_the_end")
        server.ask("/leave?kind=leave_at_the_end")
        server.stop()
        assert "app: flushed" in server.stderr
        assert re.search(r"raised SystemExit\(4\), .*, in leave_at_the_end\(\) at ", server.stderr)


def test_what_is_not_a_left_tasks_own_exit_is_obeyed_as_they_end() -> None:
    async def exit_soon() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            asyncio.get_running_loop().call_soon(sys.exit, 7)
            await asyncio.sleep(60)

    loop = asyncio.new_event_loop()
    kept = loop.create_task(exit_soon())
    try:
        loop.run_until_complete(asyncio.sleep(0))
        with pytest.raises(SystemExit, match="7"):
            left_tasks.end(loop, lambda: LEFT_TASKS)
        loop.run_until_complete(asyncio.wait({kept}, timeout=0))
    finally:
        left_tasks.end(loop, lambda: LEFT_TASKS)
        loop.close()


def test_a_task_that_fails_in_the_turn_in_which_it_is_given_up_is_told_as_well() -> None:
    async def fail() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("failed at the end")

    told: list[dict[str, Any]] = []
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: told.append(context))
    kept = loop.create_task(fail())
    try:
        loop.run_until_complete(asyncio.sleep(0))
        left_tasks.end(loop, lambda: 0.0)
    finally:
        loop.close()
    assert [(each["task"], str(each["exception"])) for each in told] == [(kept, "failed at the end")]


@pytest.mark.parametrize(
    ("rest", "kept"), [(30.0, LEFT_TASKS), (5.0, 0.5), (1.0, 0.1), (0.0, 0.0), (-1.0, 0.0)]
)
def test_a_share_of_what_is_left_is_the_left_tasks(rest: float, kept: float) -> None:
    assert for_left_tasks(rest) == pytest.approx(kept)


class Asked:
    """A lifespan that hears when it is to be over."""

    end = 0.0

    def ends_by(self, end: float) -> None:
        self.end = end

    async def shutdown(self) -> None:
        pass


@pytest.mark.parametrize("is_our_loop", [True, False])
def test_a_lifespan_that_hangs_is_cut_before_the_end_where_left_tasks_are_ours(is_our_loop: bool) -> None:
    server, asked = InProcess(Config("left_app:app")), Asked()
    server.lifespan = asked  # type: ignore[assignment]
    server._own = object() if is_our_loop else None  # type: ignore[assignment]

    async def ends() -> float:
        end = asyncio.get_running_loop().time() + 600.0
        await server._end_lifespan(end)
        return end - asked.end

    assert asyncio.run(ends()) == pytest.approx(LEFT_TASKS if is_our_loop else 0.0)


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
    return line.partition(OVERDUE)[2].removesuffix(f". Ending process [{server.pid}].")


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


def test_a_python_that_does_not_come_to_its_end_is_told_and_the_loop_not_blamed(loop: str) -> None:
    """What holds it is past asking; so is a machine that has no processor for it."""
    with serve(loop, "--timeout-graceful-shutdown", "1") as server:
        server.ask("/linger")
        assert overdue(server) == "the event loop is over, and Python itself does not come to its end"
        assert "Finished server process" in server.stderr


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


NAMED = r"the task 'block 0' blocks the event loop, in sleep_in_python\(\) at \S*left_app\.py:\d+"


def test_what_blocks_the_stop_of_a_worker_is_named_before_its_parent_would_kill_it() -> None:
    with workers("--timeout-graceful-shutdown", "1", target="left_app:app") as server:
        server.ask("/leave?kind=block")
        server.signal(SIGTERM)
        assert server.wait_exit(20) == 1
        said = rf"did not stop within [\d.]+ s of being told to: {NAMED}\. Ending process \[\d+\]\."
        assert len(re.findall(said, server.stderr)) == 1
        assert ": killed." not in server.stderr


def test_what_blocks_a_process_whose_parent_was_killed_is_named_and_does_not_keep_it_for_ever() -> None:
    with Server("left_app:app", "--reload") as server:
        server.ask("/leave?kind=block")
        server.process.kill()
        server.wait_line("did not stop within ", timeout=STARTUP_SECONDS)
        assert re.search(rf" of being told to: {NAMED}\. Ending process \[\d+\]\.", server.stderr)
        assert server.wait_exit() == -SIGKILL
