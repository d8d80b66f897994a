"""Workers that coordinate by grelmicro, in a file, in PostgreSQL and in Redis: locks, a task, a leader.

Of the databases `make coordination` makes use; the file is for every run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Server, request, stores
from harness.stores import Store
from harness.workers import wait_all, wait_gone

pytest.importorskip("grelmicro")

pytestmark = pytest.mark.skipif(UVICORN, reason="of workers that are ours")

WORKERS = 2
LEASE = 3.0  # of coordination_app's leader
ROUNDED = 0.01
KINDS = {"sqlite": stores.sqlite, "postgresql": stores.postgresql, "redis": stores.redis}
STARTED_HERE = [pytest.param(name, marks=pytest.mark.databases) for name in ("postgresql", "redis")]


@pytest.fixture(scope="module", params=["sqlite", *STARTED_HERE])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with KINDS[request.param](tmp_path_factory.mktemp(request.param)) as store:
        yield store


@pytest.fixture
def server(store: Store, tmp_path: Path) -> Iterator[Server]:
    environment = {"COORDINATION": store.place, "COORDINATION_FOLDER": str(tmp_path)}
    options = ("--workers", str(WORKERS), "--no-access-log", "--timeout-graceful-shutdown", "4")
    with Server("coordination_app:app", *options, env=environment, allow=["Traceback"]) as server:
        wait_all(server)
        yield server


def everybody(server: Server, *, without: int = 0) -> dict[int, dict[str, Any]]:
    """What each worker says, by its process."""
    answers: dict[int, dict[str, Any]] = {}
    while len(answers) < WORKERS:
        answer = server.ask("/who").json()
        if answer["pid"] != without:
            answers[answer["pid"]] = answer
    return answers


def leader_of(server: Server, *, without: int = 0) -> int:
    """Who leads; there is never more than one."""
    while True:
        leads = [pid for pid, each in everybody(server, without=without).items() if each["leads"]]
        if leads:
            [leader] = leads
            return leader


def test_each_worker_has_identities_of_its_own(server: Server) -> None:
    identities = [each for answer in everybody(server).values() for each in answer["workers"].values()]
    assert len(set(identities)) == len(identities) == WORKERS * 3


def test_a_lock_excludes_across_workers(server: Server, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        pids = [answer.json()["pid"] for answer in pool.map(lambda _: server.ask("/count"), range(60))]
    assert len(set(pids)) == WORKERS
    assert (tmp_path / "counter").read_text() == "60"


def test_a_task_is_done_by_one_worker_and_not_again_right_after(server: Server) -> None:
    answers: list[dict[str, Any]] = []
    while len({each["pid"] for each in answers}) < WORKERS or len(answers) < 10:
        answers.append(server.ask("/report").json())
    assert [each["report"] for each in answers] == ["done"] + ["skipped"] * (len(answers) - 1)


def test_locks_have_the_names_that_others_look_for(server: Server, store: Store, tmp_path: Path) -> None:
    leader_of(server)
    client = server.connect()
    client.send(request("/keep"))
    assert client.read_response().body == b"kept"
    assert server.ask("/report").json()["report"] == "done"
    names = store.keys()
    assert {"lock:counter", "leader:main", f"tasklock:report_{tmp_path.name}"} <= names
    assert {name.partition(":")[0] for name in names} <= {"lock", "leader", "tasklock"}


def test_a_killed_leaders_lease_is_kept_to_its_written_end(server: Server, store: Store) -> None:
    token, end, killed = "", 0.0, 0
    while not killed:
        token, end = store.holder("leader:main")
        said = everybody(server).items()
        killed = next((pid for pid, each in said if each["workers"]["leader"] == token), 0)
    os.kill(killed, signal.SIGKILL)
    while (now := store.holder("leader:main"))[0] in (token, ""):
        end = max(end, now[1])
    # What is written of the successor's is never before it took the lock and a lease more.
    assert now[1] - LEASE >= end - ROUNDED


def test_a_killed_leader_is_succeeded_and_its_job_goes_on(server: Server, tmp_path: Path) -> None:
    killed = leader_of(server)
    led = tmp_path / "led"
    while not led.exists() or str(killed) not in led.read_text():
        server.ask("/who")
    os.kill(killed, signal.SIGKILL)
    wait_gone([killed])
    successor = leader_of(server, without=killed)
    assert successor != killed
    while str(successor) not in led.read_text():
        server.ask("/who")
    # One after the other, and never both.
    runs = led.read_text().split()
    assert runs == [str(killed)] * runs.count(str(killed)) + [str(successor)] * runs.count(str(successor))


def test_locks_are_released_on_a_graceful_stop(server: Server, store: Store) -> None:
    leader_of(server)
    client = server.connect()
    client.send(request("/keep"))
    assert client.read_response().body == b"kept"
    assert {"lock:counter", "leader:main"} <= store.keys()
    server.stop()
    assert not {"lock:counter", "leader:main"} & store.keys()
