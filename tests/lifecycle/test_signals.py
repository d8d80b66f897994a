"""Signals that the application has handlers of its own for, and the ones Python keeps."""

from __future__ import annotations

from contextlib import suppress
from signal import SIGINT, SIGTERM, SIGUSR1, SIGUSR2, Signals

import pytest
from harness import ClosedError, Server, request

SIGNALS = [SIGTERM, SIGINT]
TARGETS = {
    "handlers_at_import:app": "import handler",
    "lifecycle_app:lifespan_handlers": "lifespan handler",
    "lifecycle_app:loop_handlers": "loop handler",
}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_applications_own_handler_gets_the_signal_and_we_still_stop(
    loop: str, target: str, number: Signals
) -> None:
    with Server(target, "--loop", loop) as server:
        assert server.ask("/hello").status == 200
        server.stop(number)
        assert f"app: {TARGETS[target]} got {number.name}" in server.stderr
        assert server.stderr.count(f"got {number.name}") == 1
        assert "app: shutdown" in server.stderr


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_applications_own_handler_gets_the_signal_while_a_request_runs(
    loop: str, target: str, number: Signals
) -> None:
    with Server(target, "--loop", loop) as server:
        client = server.connect()
        client.send(request("/sleep?name=running&seconds=0.7"))
        server.wait_line("app: running began")
        server.signal(number)
        server.wait_line(f"app: {TARGETS[target]} got {number.name}")
        assert client.read_response().body == b"slept"
        server.assert_ended_well()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_handler_that_exits_is_obeyed_when_all_has_ended_in_order(loop: str, number: Signals) -> None:
    with Server("lifecycle_app:exiting_handlers", "--loop", loop) as server:
        client = server.connect()
        client.send(request("/sleep?name=running&seconds=0.7"))
        server.wait_line("app: running began")
        # It sleeps by now: what a handler raises strikes whatever runs.
        assert server.ask("/hello").status == 200
        server.signal(number)
        server.wait_line(f"app: leaves by {number.name}")
        assert client.read_response().body == b"slept"
        assert server.wait_exit() == 5
        assert "app: shutdown" in server.stderr


def test_what_a_handler_raises_in_the_loop_ends_nothing_and_the_server_still_stops_in_order(
    loop: str,
) -> None:
    allowed = ["of a signal handler"]
    with Server("lifecycle_app:raising_handlers", "--loop", loop, allow=allowed) as server:
        client = server.connect()
        client.send(request("/sleep?name=running&seconds=0.9"))
        server.wait_line("app: running began")
        # It sleeps by now: what a handler raises strikes whatever runs.
        assert server.ask("/hello").status == 200
        server.signal(Signals.SIGUSR1)
        server.wait_line("app: raises at SIGUSR1")
        assert server.ask("/hello").status == 200
        server.signal(Signals.SIGTERM)
        server.wait_line("app: raises at SIGTERM")
        assert client.read_response().body == b"slept"
        assert server.wait_exit() == 0
        assert "app: shutdown" in server.stderr
        assert server.stderr.count("ValueError: of a signal handler") == 2


def test_a_handler_that_raises_while_a_request_begins_keeps_no_client_waiting(loop: str) -> None:
    allowed = ["of a signal handler", "Exception in"]
    with Server("lifecycle_app:raising_handlers", "--loop", loop, allow=allowed) as server:
        server.ask("/hello")
        for _ in range(40):
            with server.connect() as client:
                client.send(request("/hello"))
                server.signal(Signals.SIGUSR1)
                # Struck where its connection is let in, it is a connection that ends.
                with suppress(ClosedError):
                    assert client.read_response().status in (200, 500)
        # The last one may strike what comes next.
        while server.ask("/hello").status != 200:
            pass
        server.signal(Signals.SIGTERM)
        assert server.wait_exit() == 0
        assert "app: shutdown" in server.stderr


def test_a_handler_that_exits_while_a_request_begins_keeps_no_client_waiting_and_stops_the_server(
    loop: str,
) -> None:
    with Server("lifecycle_app:exiting_handlers", "--loop", loop, allow=["Exception in"]) as server:
        server.ask("/hello")
        client = server.connect()
        client.send(request("/hello"))
        server.signal(Signals.SIGTERM)
        # Struck where its connection is let in, it is a connection that ends.
        with suppress(ClosedError):
            assert client.read_response().status in (200, 500)
        # What strikes the application's own code is the request's, as under uvicorn; the server still stops.
        assert server.wait_exit() in (0, 5)
        assert "app: shutdown" in server.stderr


@pytest.mark.parametrize("after", ["nothing", "body"])
def test_an_exit_behind_the_application_is_obeyed_as_well(loop: str, after: str) -> None:
    """Where our own frames are struck: in the task's first step, and in one that the drain takes for it."""
    with Server("lifecycle_app:exiting_filter", "--loop", loop) as server:
        running = server.connect()
        running.send(request("/sleep?name=running&seconds=0.7"))
        server.wait_line("app: running began")
        client = server.connect()
        client.send(request(f"/no-answer?after={after}", method="POST", body=b"x")[:-1])
        if after == "body":
            server.wait_line("app: reads")
        client.send(b"x")
        assert client.read_response().status == 500
        server.wait_line("app: leaves by a filter")
        assert running.read_response().body == b"slept"
        assert server.wait_exit() == 5
        assert "app: shutdown" in server.stderr


def test_an_interrupt_never_strikes_a_running_handler(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        client = server.connect()
        client.send(request("/spin?seconds=1"))
        server.wait_line("app: spin began")
        server.signal(SIGINT)
        assert client.read_response().body == b"spun"
        server.assert_ended_well()
        assert "KeyboardInterrupt" not in server.stderr


@pytest.mark.parametrize("number", [SIGUSR1, SIGUSR2])
def test_a_python_handler_runs_at_once_on_an_idle_server(loop: str, number: Signals) -> None:
    with Server("lifecycle_app:user_handlers", "--loop", loop) as server:
        for count in range(1, 4):
            server.signal(number)
            server.wait_line(f"app: user handler got {number.name}", count=count, timeout=5)
        assert server.ask("/hello").status == 200


def test_a_loops_handler_runs_at_once_on_an_idle_server(loop: str) -> None:
    with Server("lifecycle_app:loop_user_handler", "--loop", loop) as server:
        for count in range(1, 4):
            server.signal(SIGUSR1)
            server.wait_line("app: loop got SIGUSR1", count=count, timeout=5)
        assert server.ask("/hello").status == 200


def test_a_python_handler_runs_after_requests_were_served(loop: str) -> None:
    with Server("lifecycle_app:user_handlers", "--loop", loop) as server:
        with server.connect() as client:
            for _ in range(10):
                client.assert_open()
        server.signal(SIGUSR1)
        server.wait_line("app: user handler got SIGUSR1", timeout=5)


def test_a_python_handler_runs_though_the_loop_has_had_one_and_lost_it(loop: str) -> None:
    with Server("lifecycle_app:user_handlers", "--loop", loop) as server:
        assert server.ask("/loop-handler-for-a-moment").json() == {"removed": True}
        assert server.ask("/hello").status == 200
        server.signal(SIGUSR1)
        server.wait_line("app: user handler got SIGUSR1", timeout=5)


def test_many_signals_under_traffic_lose_no_request(loop: str) -> None:
    with Server("lifecycle_app:user_handlers", "--loop", loop) as server, server.connect() as client:
        for _ in range(300):
            server.signal(SIGUSR1)
            client.assert_open()
        server.wait_line("app: user handler got SIGUSR1")


def test_pythons_handler_is_a_servers_method_that_says_whether_it_ends(loop: str) -> None:
    """Event streams that look at `signal.getsignal(SIGTERM).__self__` learn of the end by it."""
    with Server("lifecycle_app:app", "--loop", loop) as server:
        assert server.ask("/handler").json() is False
        client = server.connect()
        client.send(request("/watch"))
        server.wait_line("app: watch began")
        server.signal(SIGTERM)
        assert client.read_response().body == b"ending"
        server.assert_ended_well()
