"""What the bridge promises asyncio, one test for each promise, on every loop, runtime and stepper.

`docs/decisions/0009-the-invariants.md` tells what holds each, and how its test failed with that taken out.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from signal import SIGTERM
from socket import SHUT_RDWR
from typing import Any

import pytest
from harness import UVICORN, Client, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="these are promises of ours")

ROOT = Path(__file__).resolve().parent.parent.parent
TASK, CONTEXT, THREAD, LOOP = range(4)
SHARE = 128  # messages, or steps, between two turns of the loop
ROUNDS, CLIENTS = 3, 12


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("invariant_app:app", "--loop", loop, "--no-access-log") as server:
        # Else these would be another stepper's promises.
        assert server.ask("/task").json()["plain"] is not loop.endswith("-rust")
        yield server


def post(target: str, length: int) -> bytes:
    """A request whose body is still to come."""
    return f"POST {target} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n".encode()


def walk(server: Server, client: Client, name: str) -> dict[str, list[bool]]:
    """What a request saw at each of its steps, having waited in every way there is."""
    client.send(post(f"/steps?name={name}", 4))
    assert server.note(f"{name}-receives") is True
    client.send(b"body")
    assert client.read_response(method="POST").body == b" " * 300
    seen: dict[str, list[bool]] = server.note(f"{name}-steps")
    return seen


@pytest.fixture(scope="module")
def steps(server: Server) -> dict[str, list[bool]]:
    with server.connect() as client:
        return walk(server, client, "alone")


def broken(steps: dict[str, list[bool]], what: int) -> list[str]:
    assert len(steps) == 15
    return [step for step, found in steps.items() if not found[what]]


def test_i01_at_each_step_its_task_is_current_and_between_steps_none_is(
    steps: dict[str, list[bool]],
) -> None:
    assert broken(steps, TASK) == []


def test_i01_a_task_is_not_stepped_in_the_middle_of_anothers_step(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/within?name=within", method="POST", body=b"x").body == b"answered"
    assert server.note("within-order") == ["who answered", "who waited"]


def test_i02_each_drive_is_in_its_requests_context(server: Server, steps: dict[str, list[bool]]) -> None:
    assert broken(steps, CONTEXT) == []
    seen: dict[str, dict[str, list[bool]]] = {}
    clients = [server.connect() for _ in range(5)]
    for number, client in enumerate(clients):
        client.send(post(f"/steps?name=one-of-{number}", 4))
    for number, client in enumerate(clients):
        name = f"one-of-{number}"
        assert server.note(f"{name}-receives") is True
        client.send(b"body")
    for number, client in enumerate(clients):
        client.read_response(method="POST")
        client.close()
        seen[f"{number}"] = server.note(f"one-of-{number}-steps")
    assert {name: broken(each, CONTEXT) for name, each in seen.items() if broken(each, CONTEXT)} == {}


def test_i03_a_requests_task_is_made_as_asyncio_makes_tasks(server: Server, loop: str) -> None:
    assert server.ask("/task").json() == {
        "plain": not loop.endswith("-rust"),
        "a task": True,
        "loop": True,
        "named": True,
        "among all": True,
        "done": False,
        "cancelling": 0,
        "shown": True,
        "weak": True,
    }


def test_i04_an_idle_loop_is_woken_by_the_network_and_by_other_threads(server: Server) -> None:
    with server.connect() as client:
        for number in range(20):
            client.send(post(f"/alone?by=receive&name=woken-{number}", 1))
            assert server.note(f"woken-{number}-waits") is True
            client.send(b"x")
            assert client.read_response(method="POST").body == b"kept"
        assert client.ask("/threads").body == b"woken"


def test_i04_one_answer_and_its_client_that_keep_each_other_busy_hold_up_nobody_else(server: Server) -> None:
    with server.connect(timeout=40) as reader:
        reader.send(request("/endless"))
        reading = threading.Thread(target=read_to_the_end, args=(reader,))
        reading.start()
        try:
            # Each on a connection of its own: somebody has to look for it.
            streamed = [server.ask("/streamed", timeout=20).json() for _ in range(200)]
        finally:
            reader.socket.shutdown(SHUT_RDWR)
            reading.join()
    # Some hundred, on a busy machine a few thousand; with nobody looking, hundreds of thousands.
    assert max(after - before for before, after in pairwise(streamed)) < 40_000


def read_to_the_end(client: Client) -> None:
    # Left in the middle of an answer, the server may reset it.
    with suppress(ConnectionResetError):
        while client.socket.recv(1 << 20):
            pass


def test_i05_who_waits_for_ours_goes_on_at_once_and_for_asyncios_a_turn_later(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/in-turn?name=turn"))
        assert server.note("turn-waits") is True
    assert server.note("turn-order") == ["one", "two", "asyncio's"]


def test_i05_who_waits_for_ours_is_not_scheduled(server: Server) -> None:
    with server.connect() as client:
        client.send(post("/at-once", 1))
        assert server.note("at-once-waits") is True
        client.send(b"x")
        assert client.read_response(method="POST").json() == {"asyncio's": 1, "ours": 0}


def test_i06_a_loop_without_cpythons_queue_is_a_loop_like_any_other(server: Server, loop: str) -> None:
    assert server.ask("/loop").json()["ready"] is ("uvloop" not in loop)
    assert "_ready" not in server.stderr
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *(ROOT / "python").rglob("*.py")]
    knowing = {path.name for path in sources if re.search(r"[\"'.]_ready\b", path.read_text())}
    # The table, for the selector of a loop that is always asyncio's.
    assert knowing == {"private_names.py"}


def test_i07_no_first_step_and_no_answer_is_scheduled(server: Server) -> None:
    ours = {"Bridge", "Flusher", "NextTurn"}
    with server.connect() as client:
        client.ask("/scheduled")
        for _ in range(3):
            for _ in range(5):
                client.ask("/hello")
            counts, queue = client.ask("/scheduled").json()
            assert {kind: count for kind, count in counts.items() if kind not in ours} == {}
            assert queue == 0


@pytest.mark.parametrize("way", ["receive", "future", "sleep", "itself", "scheduled"])
def test_i08_a_cancellation_is_thrown_once_and_who_swallows_it_goes_on(server: Server, way: str) -> None:
    name = f"swallow-{way}"
    with server.connect() as client:
        client.send(post(f"/swallow?name={name}&way={way}", 4))
        if way not in ("itself", "scheduled"):
            assert server.note(f"{name}-waits") is True
            assert server.ask(f"/cancel?name={name}").json() is True
        client.send(b"body")
        assert client.read_response(method="POST").json() == {
            "thrown": 1,
            "cancelling": [1, 0],
            "body": "body",
        }


@pytest.mark.parametrize("by", ["receive", "future"])
def test_i09_a_suspended_request_survives_the_collector(server: Server, by: str) -> None:
    """For the collector, a task and the future that only it waits for are garbage."""
    clients = [server.connect() for _ in range(10)]
    for number, client in enumerate(clients):
        client.send(post(f"/alone?by={by}&name={by}-{number}", 4))
        assert server.note(f"{by}-{number}-waits") is True
    assert server.ask("/collect").body == b"collected"
    for number, client in enumerate(clients):
        if by == "future":
            assert server.ask(f"/resolve?name={by}-{number}").json() is True
        client.send(b"kept")
        assert client.read_response(method="POST").body == b"kept"
        client.close()


def test_i10_a_signal_ends_a_server_whose_loop_is_not_on_the_main_thread(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop, module="in_a_thread") as server:
        client = server.connect()
        client.send(request("/sleep?name=running&seconds=0.3"))
        server.wait_line("app: running began")
        server.signal(SIGTERM)
        assert client.read_response().body == b"slept"
        server.assert_ended_well()
        assert "app: shutdown" in server.stderr


def test_i11_the_running_loop_is_the_loops_own_and_we_never_set_it(
    server: Server, steps: dict[str, list[bool]]
) -> None:
    assert broken(steps, LOOP) == []
    found = server.ask("/loop").json()
    assert (found["others"], found["set by"]) == (["none", "none"], 0)


def test_i12_a_parked_send_finds_its_runtime_and_goes_on_when_there_is_room(server: Server) -> None:
    with server.connect(receive_buffer=16 * 1024) as client:
        client.send(request("/stalled?name=stalled"))
        parked = server.note("stalled-parked")
        body = client.read_response().body
        saw, sent = server.note("stalled-saw")
        assert (saw, len(body)) == ("no error", sent)
        assert sent >= parked


@pytest.mark.parametrize("of", ["messages", "steps"])
def test_i13_a_request_has_its_share_and_then_the_loop_turns(server: Server, of: str) -> None:
    """That a channel holds more than a share is a constant assertion in `http.rs`."""
    assert server.ask(f"/share?name={of}&of={of}").body == b"answered"
    assert server.note(f"{of}-share") <= SHARE


def test_i13_a_request_that_waits_for_its_reader_has_no_second_share_before_the_loop_turns(
    server: Server,
) -> None:
    for _ in range(5):
        assert server.ask("/share?name=pieces&of=pieces").body == b"x" * 2000
        # A send that yields is taken, and so is the one after it if it waited instead.
        assert server.note("pieces-share") <= SHARE + 2


def test_i14_python_is_driven_on_the_loops_thread_whoever_fights_for_the_gil(loop: str) -> None:
    problems: list[Any] = []
    with Server("invariant_app:app", "--loop", loop, "--no-access-log", env={"HOGS": "4"}) as server:

        def drive(number: int) -> None:
            try:
                with server.connect(timeout=40) as client:
                    for turn in range(ROUNDS):
                        seen = walk(server, client, f"{number}-{turn}")
                        problems.extend(broken(seen, what) for what in range(4) if broken(seen, what))
            except Exception as error:
                problems.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=drive, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
        assert problems == []
        server.stop(timeout=40)
        assert "Cannot enter" not in server.stderr


def test_the_poke_rule_no_request_wakes_the_loop_by_its_self_pipe(server: Server) -> None:
    with server.connect() as client:
        client.ask("/woken")
        for number in range(20):
            client.ask("/hello")
            assert len(client.ask("/stream").body) == 80_000
            client.ask("/child?by=task")
            client.send(post(f"/alone?by=receive&name=poked-{number}", 1))
            assert server.note(f"poked-{number}-waits") is True
            client.send(b"x")
            assert client.read_response(method="POST").body == b"kept"
        assert client.ask("/woken").json() == {}


@pytest.mark.parametrize("by", ["task", "timer", "callback"])
def test_the_poke_rule_what_a_drive_schedules_runs_on_an_idle_loop(server: Server, by: str) -> None:
    """No poke is needed: who drives is a callback of the loop, or in the place of its poll."""
    with server.connect() as client:
        for _ in range(5):
            assert client.ask(f"/child?by={by}").body.startswith(b"by a ")
