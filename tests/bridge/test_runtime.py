"""The two threads of the bridge: who wakes whom, and whose runtime is whose."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from harness import HAS_FUSED, Server
from harness.client import Client

# One wake takes a tenth of a millisecond; two busy cores take what they want.
SOON_SECONDS = 0.05


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("bridge_app:app", "--loop", loop) as server:
        yield server


@pytest.mark.skipif(not HAS_FUSED, reason="the fused runtime is Linux's")
@pytest.mark.parametrize("name", ["--loop=asyncio", "--loop=auto"])
@pytest.mark.parametrize("runtime", ["auto", "fused", "threaded"])
def test_the_network_has_a_thread_of_its_own_only_if_that_is_wanted(name: str, runtime: str) -> None:
    with Server("bridge_app:app", name, "--runtime", runtime) as server:
        assert server.ask("/hello").status == 200
        assert server.has_thread("bridgehead-net") is (runtime == "threaded")


@pytest.mark.skipif(sys.platform != "linux", reason="epoll is Linux's")
def test_an_epoll_set_of_the_applications_own_is_not_taken_for_tokios(loop: str) -> None:
    with Server("stale_app:app", "--loop", loop) as server:
        assert server.ask("/empty").body == b"empty"
        for _ in range(3):
            assert server.ask("/hello").body == b"hello"
        assert server.has_thread("bridgehead-net") is not loop.startswith("fused")


@pytest.mark.parametrize("size", [1, 40_000, 65_536, 200_000])
def test_a_complete_answer_ends_without_an_error_however_large_its_last_message(
    server: Server, size: int
) -> None:
    with server.connect() as client:
        for _ in range(5):
            assert len(client.ask(f"/large-end?size={size}").body) == 2 * size
            assert server.note("large-end") == "no error"


def test_receiving_goes_on_beside_a_parked_send(server: Server) -> None:
    with server.connect(receive_buffer=16 * 1024) as client:
        client.send(b"POST /duplex?name=duplex HTTP/1.1\r\nHost: test\r\nContent-Length: 50\r\n\r\n")
        for sent in range(1, 51):
            client.send(b"x")
            assert server.note("duplex-got") == sent
        assert len(client.read_response().body) == 256 * 65_536


def test_a_timer_fires_after_many_were_cancelled(server: Server) -> None:
    assert server.ask("/cancelled-timers").body == b"cancelled"
    # The loop has nothing else to do: only the timer ends its wait.
    assert server.ask("/sleep").body == b"slept"


def test_a_reader_that_leaves_something_unread_is_called_again(server: Server) -> None:
    """Without a new write: what a descriptor has is a level, not an edge."""
    assert server.ask("/read-byte-by-byte?count=200").json() == 200


def test_a_sleeping_loop_is_woken_at_once(server: Server) -> None:
    with server.connect() as client:
        client.ask("/hello")
        assert usual(client, "/hello") < SOON_SECONDS


def usual(client: Client, target: str) -> float:
    """How long an answer takes, mostly: the loop has nothing else to wake up for."""
    took = []
    for _ in range(21):
        began = time.monotonic()
        client.ask(target)
        took.append(time.monotonic() - began)
    return statistics.median(took)


def test_an_idle_server_does_not_run(loop: str, server: Server) -> None:
    # Once in a second; and four times, where nobody would rouse it.
    look = (
        ("bridgehead-cont",)
        if loop.removesuffix("-rust") == "fused"
        else ("bridgehead-cont", "bridgehead-heal")
    )
    with server.connect() as client:
        client.ask("/hello")
        deadline = time.monotonic() + 20
        before: dict[str, int] = {}
        now = server.threads_runtime(but=look)
        while before != now:
            assert time.monotonic() < deadline, (before, now)
            time.sleep(0.5)  # not for readiness: an idle while is what is looked for
            before, now = now, server.threads_runtime(but=look)
        client.assert_open()


def test_a_suspended_request_is_woken_at_once(server: Server) -> None:
    took = []
    with server.connect() as client:
        for _ in range(21):
            client.send(b"POST /suspended?name=wake HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\n")
            assert server.note("suspended-wake") is True
            began = time.monotonic()
            client.send(b"x")
            assert client.read_response().body == b"x"
            took.append(time.monotonic() - began)
    assert statistics.median(took) < SOON_SECONDS


def test_an_endless_sender_and_receiver_leave_timers_running(server: Server) -> None:
    client = server.connect()
    client.send(b"POST /endless HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert server.note("endless") is True
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set() and client.read_some():
            pass

    def write() -> None:
        while not stop.is_set() and client.try_send(b"1\r\nx\r\n" * 1000):
            pass

    threads = [threading.Thread(target=each) for each in (read, write)]
    for thread in threads:
        thread.start()
    try:
        # Starved it is late for ever.
        assert server.ask("/lateness").json() < 1.0
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
        client.reset()


def test_debug_mode_may_be_switched_on_where_a_deadline_of_ours_led(loop: str) -> None:
    """uvloop measures a timer's callback if it is to at its end, and fails if it was not at its beginning."""
    with Server("lifecycle_app:app", "--loop", loop, "--timeout-request", "0.3") as server:
        assert server.ask("/debug-once-late").status == 504
        server.wait_line("app: debugs")
        assert server.ask("/hello").status == 200
