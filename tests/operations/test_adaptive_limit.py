"""`--limit-concurrency auto`: the limit follows how long requests take; what is too much is shed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from harness import UVICORN, Client, Server
from operators import Operators
from websockets.sync.client import connect

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such limit")

AUTO = ("--limit-concurrency", "auto", "--admin", "127.0.0.1:0", "--no-access-log")
LIMIT = 'bridgehead_concurrency_limit{worker="0"}'
PATIENCE = 60.0


@contextmanager
def clients(server: Server, number: int, target: str) -> Iterator[dict[int, int]]:
    """So many who ask again and again, and how often they were answered with each status."""
    statuses: dict[int, int] = {}
    over = threading.Event()
    lock = threading.Lock()

    def ask() -> None:
        while not over.is_set():
            with Client(("127.0.0.1", server.port), timeout=PATIENCE) as client:
                status = client.ask(target).status
            with lock:
                statuses[status] = statuses.get(status, 0) + 1
            if status == 503:
                time.sleep(0.05)  # as who is told to come again does

    asking = [threading.Thread(target=ask) for _ in range(number)]
    for each in asking:
        each.start()
    try:
        yield statuses
    finally:
        over.set()
        for each in asking:
            each.join(PATIENCE)


def test_requests_that_only_compute_are_let_in_a_few_at_a_time_and_others_are_shed(loop: str) -> None:
    options = ("--limit-queue", "5", "--timeout-queue", "200ms")
    with Server("health_app:app", "--loop", loop, *AUTO, *options) as server:
        operators = Operators(server)
        assert operators.samples()[LIMIT] == 20
        # A loop that answers a hundred a second is asked for four times that and more.
        with clients(server, 80, "/hold?seconds=0.01&how=compute") as statuses:
            operators.until(lambda: operators.samples()[LIMIT] < 15)
            operators.until(lambda: statuses.get(503, 0) >= 50)
            answered = statuses.get(200, 0)
            operators.until(lambda: statuses.get(200, 0) >= answered + 50)
        assert set(statuses) == {200, 503}
        # It is over: nobody waits, and the next is let in at once.
        operators.until(lambda: operators.status()["total"]["active"] == 0)
        assert operators.samples()['bridgehead_requests{at="permit"}'] == 0
        assert server.ask("/hold?seconds=0.01&how=compute", timeout=PATIENCE).status == 200
        assert operators.status()["workers"][0]["limit"] == operators.samples()[LIMIT] >= 2


def test_requests_that_only_wait_are_let_in_more_and_more() -> None:
    with Server("health_app:app", *AUTO) as server:
        operators = Operators(server)
        with clients(server, 60, "/wait?seconds=0.1") as statuses:
            operators.until(lambda: operators.samples()[LIMIT] > 25)
        assert set(statuses) == {200}


def test_websockets_take_no_permits() -> None:
    with Server("websocket_app:app", *AUTO) as server, ExitStack() as opened:
        for _ in range(25):
            address = f"ws://127.0.0.1:{server.port}/echo"
            opened.enter_context(connect(address, open_timeout=PATIENCE, proxy=None))
        operators = Operators(server)
        assert operators.samples()['bridgehead_connections{state="websocket"}'] == 25
        assert operators.samples()[LIMIT] == 20
