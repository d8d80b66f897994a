"""The loop on a thread that is not the main one, where Python itself can set no signal handler."""

from __future__ import annotations

import os
from signal import SIGINT, SIGTERM, Signals
from typing import Any

import pytest
from harness import UVICORN, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn is not started by this program")

SIGNALS = [SIGTERM, SIGINT]


def threaded(loop: str, *options: str, app: str = "lifecycle_app:app", **more: Any) -> Server:
    return Server(app, "--loop", loop, *options, module="in_a_thread", **more)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_running_request_finishes_and_the_lifespan_ends(loop: str, number: Signals) -> None:
    with threaded(loop) as server:
        client, idle = server.connect(), server.connect()
        idle.assert_open()
        client.send(request("/sleep?name=running&seconds=0.7"))
        server.wait_line("app: running began")
        server.signal(number)
        idle.assert_closed()
        assert client.read_response().body == b"slept"
        client.assert_closed()
        server.assert_ended_well()
        assert "app: shutdown" in server.stderr
        assert "app: joined [0]" in server.stderr
        assert "KeyboardInterrupt" not in server.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_an_idle_server_ends(loop: str, number: Signals) -> None:
    with threaded(loop) as server:
        server.stop(number)
        assert "app: shutdown" in server.stderr


def test_an_interrupt_strikes_no_thread(loop: str) -> None:
    with threaded(loop) as server:
        client = server.connect()
        client.send(request("/spin?seconds=0.7"))
        server.wait_line("app: spin began")
        server.signal(SIGINT)
        assert client.read_response().body == b"spun"
        server.assert_ended_well()
        assert "KeyboardInterrupt" not in server.stderr


@pytest.mark.parametrize(("first", "second"), [(SIGTERM, SIGTERM), (SIGINT, SIGINT), (SIGTERM, SIGINT)])
def test_a_second_signal_ends_now(loop: str, first: Signals, second: Signals) -> None:
    with threaded(loop) as server:
        client, idle = server.connect(), server.connect()
        idle.assert_open()
        client.send(request("/sleep?name=long&seconds=60"))
        server.wait_line("app: long began")
        server.signal(first)
        idle.assert_closed()
        server.signal(second)
        assert server.wait_exit() == -second
        assert "app: long finally" not in server.stderr


def test_what_does_not_end_is_cancelled(loop: str) -> None:
    with threaded(loop, "--timeout-graceful-shutdown", "1") as server:
        client = server.connect()
        client.send(request("/sleep?name=long&seconds=60"))
        server.wait_line("app: long began")
        server.stop()
        assert "app: long finally" in server.stderr
        assert "app: shutdown" in server.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_a_handler_of_the_main_threads_gets_the_signal_and_we_still_stop(loop: str, number: Signals) -> None:
    with threaded(loop, env={"OWN_HANDLERS": "1"}) as server:
        client = server.connect()
        client.send(request("/sleep?name=running&seconds=0.5"))
        server.wait_line("app: running began")
        server.signal(number)
        assert client.read_response().body == b"slept"
        server.assert_ended_well()
        assert server.stderr.count(f"main thread's handler got {number.name}") == 1
        assert "app: shutdown" in server.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_startup_ends_it(loop: str, number: Signals) -> None:
    with threaded(loop, app="lifecycle_app:hangs_at_startup", ready=False) as server:
        server.wait_line("app: startup hangs")
        server.stop(number)
        assert "app: startup finally" in server.stderr


def test_a_forked_child_ends_by_its_own_signal_and_the_parent_serves_on(loop: str) -> None:
    with threaded(loop, app="fork_app:app", env={"PYTHONWARNINGS": "ignore"}) as server:
        child = server.ask("/fork").json()
        os.kill(child, SIGTERM)
        assert server.ask(f"/wait?pid={child}").json() == -SIGTERM
        assert server.ask("/hello").body == b"hello"
