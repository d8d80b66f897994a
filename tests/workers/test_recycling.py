"""Workers that have served for long enough: a successor takes over, and no client notices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import UVICORN, Server
from harness.server import STARTUP_SECONDS
from harness.workers import wait_all

from bridgehead.config import Config
from bridgehead.lifetime import Lifetime, resident
from bridgehead.quantities import Bytes
from bridgehead.testing import Canary

pytestmark = pytest.mark.skipif(UVICORN, reason="of workers that are ours")

TAKES_OVER = "Another takes over."


def canaries(ledger: Path, *options: str) -> Server:
    env = {"CANARY_LEDGER": str(ledger)}
    return Server(
        "bridgehead.testing.canary_app:app", *options, "--lifespan", "off", "--no-access-log", env=env
    )


def replaced(server: Server) -> list[str]:
    return re.findall(r"Worker \[(\d+)\] has ", server.stderr)


@pytest.mark.timeout(120)
def test_workers_that_have_had_so_many_requests_are_replaced_and_no_request_is_lost(tmp_path: Path) -> None:
    limits = ("--workers", "2", "--limit-max-requests", "100", "--limit-max-requests-jitter", "10")
    with canaries(tmp_path, *limits) as server:
        wait_all(server)
        with Canary(server.url, ["/", "/?wait=0.02"], ledger=tmp_path, rate=200) as canary:
            server.wait_line(TAKES_OVER, count=4, timeout=60)
            canary.wait_for(100)
            verdict = canary.check()
        verdict.assert_kept()
        assert {each.status for each in canary.log} == {200}
        server.stop()
        assert len(set(replaced(server))) >= 4


def test_a_worker_takes_its_leave_with_an_answer_that_closes_the_connection(tmp_path: Path) -> None:
    with canaries(tmp_path, "--workers", "2", "--worker-lifetime", "1") as server:
        wait_all(server)
        kept = server.connect()
        while kept.ask("/").header("connection") != "close":
            assert len(replaced(server)) < 20
        kept.assert_closed()
        server.stop()


def test_a_worker_that_takes_too_much_memory_is_replaced(tmp_path: Path) -> None:
    with canaries(tmp_path, "--workers", "2", "--worker-max-rss", "1M") as server:
        line = server.wait_line(TAKES_OVER, timeout=STARTUP_SECONDS)
        assert " MiB of memory. " in line
        assert server.ask("/").status == 200
        server.stop()


def test_a_lifetime_is_stretched_by_chance_and_never_cut() -> None:
    config = Config(limit_max_requests=100)
    never, always = Lifetime(config, lambda: 0.0), Lifetime(config, lambda: 1.0)
    assert [each.ended_by(requests=99, seconds=1e9, memory=2**60) for each in (never, always)] == [None, None]
    assert never.ended_by(requests=100, seconds=0, memory=0) == "has had 100 requests"
    assert always.ended_by(requests=109, seconds=0, memory=0) is None
    assert always.ended_by(requests=110, seconds=0, memory=0) is not None
    slow = Lifetime(Config(worker_lifetime=10, worker_lifetime_jitter=5), lambda: 1.0)
    assert slow.ended_by(requests=0, seconds=14.9, memory=0) is None
    assert slow.ended_by(requests=0, seconds=15, memory=0) == "has served for 15 s"
    assert not Lifetime(Config()).is_limited


def test_memory_counts_when_it_is_too_much_twice_in_a_row() -> None:
    large = Lifetime(Config(worker_max_rss=Bytes(2**20)))
    seen = [large.ended_by(requests=0, seconds=0, memory=each) for each in (2**21, 0, 2**21, 2**21)]
    assert seen == [None, None, None, "takes 2 MiB of memory"]


def test_what_a_process_takes_is_known_and_of_one_that_is_gone_nothing() -> None:
    import os

    assert resident(os.getpid()) > 2**20
    assert resident(2**22 + 1) == 0
