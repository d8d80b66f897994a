"""More requests than the application may work on at once: some wait, the others are told to come again.

What is refused and what waits is for the Rust tests to say (`tests/it/admission.rs`); here it is Python
that holds the permits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import SIGTERM

import pytest
from harness import Client, Server, request
from harness.server import COMPLAINTS

ONE = ["--limit-concurrency", "1", "--log-level", "debug"]


@pytest.fixture(scope="module")
def refusing(loop: str) -> Iterator[Server]:
    """Nobody waits."""
    with Server("wire_app:app", "--loop", loop, *ONE, "--limit-queue", "0") as server:
        yield server


@pytest.fixture(scope="module")
def patient() -> Iterator[Server]:
    """Whoever waits does so without end."""
    with Server("wire_app:app", *ONE, "--timeout-queue", "0", allow=["Traceback"]) as server:
        yield server


def begin(client: Client) -> None:
    """A request that runs until its client has left."""
    client.send(request("/until-gone"))
    _, status, *_ = client.read_head()
    assert status == 200


def ask_until_let_in(client: Client) -> None:
    """A permit is back a moment after the task has ended, which nobody tells a client of."""
    while (status := client.ask("/hello").status) == 503:
        pass
    assert status == 200


def test_a_permit_is_back_when_the_task_has_ended_and_not_when_the_answer_went_out(
    refusing: Server, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    with refusing.connect() as client:
        assert client.ask(f"/work-after?until={ended}").body == b"answered"
        for _ in range(3):
            refused = client.ask("/hello")
            assert (refused.status, refused.header("retry-after")) == (503, "1")
            assert refused.header("connection") is None
        refusing.wait_line(f"Refused a request of 127.0.0.1:{client.port}: Service Unavailable", count=3)
        ended.touch()
        ask_until_let_in(client)


def test_who_waits_is_let_in_when_another_has_left(patient: Server) -> None:
    with patient.connect() as running, patient.connect() as waiting:
        begin(running)
        waiting.send(request("/echo", method="POST", body=b"it is kept"))
        running.close()
        assert waiting.read_response().body == b"it is kept"


def test_of_four_times_what_may_run_nothing_runs_in_vain_and_the_others_are_told_to_come_again() -> None:
    options = ("--limit-concurrency", "4", "--limit-queue", "0")

    def insist(number: int) -> None:
        """Until it has had its ten answers, on one connection."""
        with server.connect() as client:
            answered = 0
            while answered < 10:
                answer = client.ask(f"/later?seconds=0.02&say={number}-{answered}")
                if answer.status == 503:
                    assert (answer.header("retry-after"), answer.closes) == ("1", False)
                else:
                    assert (answer.status, answer.body) == (200, f"{number}-{answered}".encode())
                    answered += 1

    with Server("wire_app:app", *options) as server, ThreadPoolExecutor(16) as clients:
        list(clients.map(insist, range(16)))
        with server.connect() as client:
            while (seen := client.ask("/seen")).status == 503:
                pass
        assert seen.json().count("/later") == 160


def test_however_a_request_ends_its_permit_is_back(patient: Server) -> None:
    for target in ("/fail", "/nothing-of-the-kind", "/hello", "/fail"):
        with patient.connect() as client:
            client.send(request(target))
            client.read_to_any_end() if target == "/fail" else client.read_response()
    with patient.connect() as client:
        begin(client)
    assert patient.ask("/hello").status == 200


def test_who_has_waited_too_long_is_told_to_come_again() -> None:
    with (
        Server("wire_app:app", *ONE, "--timeout-queue", "100ms") as server,
        server.connect() as running,
        server.connect() as waiting,
    ):
        begin(running)
        refused = waiting.ask("/hello")
        assert (refused.status, refused.header("retry-after")) == (503, "1")
        assert refused.body.endswith(b"none ended in time")
        running.close()
        ask_until_let_in(waiting)


@pytest.mark.runtimes
def test_who_waits_for_a_handler_that_outlasts_the_stop_is_told_so(loop: str) -> None:
    options = ("--timeout-queue", "0", "--timeout-graceful-shutdown", "2")
    with (
        Server("lifecycle_app:app", "--loop", loop, *ONE, *options, allow=COMPLAINTS) as server,
        server.connect() as running,
        server.connect() as waiting,
    ):
        running.send(request("/stubborn"))
        server.wait_line("app: stubborn began")
        waiting.send(request("/hello"))
        server.signal(SIGTERM)
        refused = waiting.read_response()
        assert (refused.status, refused.header("retry-after"), refused.closes) == (503, "1", True)
        assert refused.body.endswith(b"none ended in time")
        server.wait_exit()


def test_without_a_limit_all_run() -> None:
    with Server("wire_app:app", "--limit-concurrency", "0", "--limit-queue", "0") as server:
        clients = [server.connect() for _ in range(3)]
        for client in clients:
            begin(client)
        assert server.ask("/hello").status == 200
        for client in clients:
            client.close()


def test_of_many_at_once_those_run_and_wait_who_may_and_the_others_are_told_so() -> None:
    runs, waits, others = 5, 20, 40
    options = ["--limit-concurrency", str(runs), "--limit-queue", str(waits), "--timeout-queue", "0"]
    with Server("wire_app:app", *options) as server:
        running = [server.connect() for _ in range(runs)]
        for client in running:
            begin(client)
        crowd = [server.connect() for _ in range(waits + others)]
        for client in crowd:
            client.send(request("/hello"))
        refused: list[Client] = []
        while len(refused) < others:
            refused += [client for client in crowd if client not in refused and client.is_readable(0.01)]
        assert len(refused) == others
        for client in refused:
            answer = client.read_response()
            assert (answer.status, answer.header("retry-after")) == (503, "1")
        for client in running:
            client.close()
        for client in crowd:
            if client not in refused:
                assert client.read_response().status == 200
