"""Signals to a program that embeds a server: caught in the main thread, given back, and raised again."""

from __future__ import annotations

import json
import os
from signal import SIGINT, SIGTERM, Signals
from typing import Any

import pytest
from harness import UVICORN, Server, request
from harness.embedded import settings_of

pytestmark = pytest.mark.skipif(UVICORN, reason="these run Bridgehead by its own names")


def program(how: str, loop: str = "asyncio", **more: Any) -> Server:
    return Server(how, module="embedding_program", env={"LOOP": json.dumps(settings_of(loop))}, **more)


@pytest.mark.parametrize("how", ["by_run", "by_server_run"])
def test_sigterm_ends_in_order_and_then_by_the_signal(loop: str, how: str) -> None:
    with program(how, loop) as server:
        client = server.connect()
        client.send(request("/sleep?name=running&seconds=0.5"))
        server.wait_line("app: running began")
        server.signal(SIGTERM)
        assert client.read_response().body == b"slept"
        assert server.wait_exit() == -SIGTERM
        assert "app: shutdown" in server.stderr
        assert "Finished server process" in server.stderr
        assert "Traceback" not in server.stderr


@pytest.mark.parametrize("how", ["by_serve", "by_serve_on_uvloop"])
@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_loop_of_the_programs_own_ends_as_it_does(how: str, number: Signals) -> None:
    if "uvloop" in how:
        pytest.importorskip("uvloop")
    with program(how) as server:
        assert server.ask("/hello").status == 200
        server.signal(number)
        assert server.wait_exit() == {SIGTERM: -SIGTERM, SIGINT: 130}[number]
        assert "app: shutdown" in server.stderr
        assert ("KeyboardInterrupt" in server.stderr) == (number == SIGINT)
        assert "Traceback" not in server.stderr


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_in_a_loop_of_the_programs_own_signals_are_raised_again_when_serving_ends(number: Signals) -> None:
    with program("by_serve_with_own_handlers") as server:
        server.stop(number)
        said = server.stderr
        assert said.count(f"own handler got {number.name}") == 1
        assert said.index("Finished server process") < said.index("own handler") < said.index("has ended")


@pytest.mark.parametrize("how", ["leaving_by_run", "leaving_by_server_run"])
@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_what_is_left_on_the_servers_own_loop_is_ended_or_named_before_the_signal_is_raised_again(
    loop: str, how: str, number: Signals
) -> None:
    with program(how, loop) as server:
        for kind in ("flush", "begin_at_the_end", "refuse"):
            server.ask(f"/leave?kind={kind}")
        server.signal(number)
        interrupted = 0 if how == "leaving_by_run" else 130
        assert server.wait_exit() == (-SIGTERM if number == SIGTERM else interrupted)
        said = server.stderr
        assert said.count("app: flushed") == 2
        assert said.count("did not end: the task 'refuse 0', in refuse() at ") == 1
        assert said.index("did not end: ") < said.index("Finished server process")


def test_a_thread_of_the_executor_does_not_hold_a_process_that_ends_by_sigterm(loop: str) -> None:
    with program("leaving_by_run", loop) as server:
        server.ask("/thread")
        server.signal(SIGTERM)
        assert server.wait_exit() == -SIGTERM
        assert "Finished server process" in server.stderr


def test_a_second_sigterm_waits_for_nothing_that_was_left(loop: str) -> None:
    with program("leaving_by_run", loop) as server:
        server.ask("/leave?kind=block")
        server.signal(SIGTERM)
        server.wait_line("app: blocks")
        server.signal(SIGTERM)
        assert server.wait_exit() == -SIGTERM


def test_run_returns_after_an_interrupt(loop: str) -> None:
    with program("by_run", loop) as server:
        server.stop(SIGINT)
        assert "app: shutdown" in server.stderr
        assert "app: returned" in server.stderr


def test_server_run_raises_the_interrupt_once_it_has_ended(loop: str) -> None:
    with program("by_server_run", loop) as server:
        server.signal(SIGINT)
        assert server.wait_exit() == 130
        assert server.stderr.index("app: shutdown") < server.stderr.index("app: KeyboardInterrupt")


def test_a_second_interrupt_waits_for_no_request(loop: str) -> None:
    with program("by_run", loop) as server:
        client, idle = server.connect(), server.connect()
        idle.assert_open()
        client.send(request("/sleep?name=long&seconds=60"))
        server.wait_line("app: long began")
        server.signal(SIGINT)
        idle.assert_closed()
        server.signal(SIGINT)
        assert server.wait_exit() == 0
        assert "app: long finally" in server.stderr
        assert "app: shutdown" not in server.stderr


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_former_handlers_come_back_and_are_told(loop: str, number: Signals) -> None:
    with program("with_own_handlers", loop) as server:
        server.stop(number)
        assert server.stderr.count(f"app: own handler got {number.name}") == 1
        assert server.stderr.index("app: shutdown") < server.stderr.index("own handler got")
        assert "app: handlers are back: True" in server.stderr
        assert "app: returned" in server.stderr


def test_a_server_on_another_thread_leaves_signals_alone() -> None:
    with program("by_thread") as server:
        assert server.ask("/hello").status == 200
        server.signal(SIGTERM)
        assert server.wait_exit() == -SIGTERM
        assert "app: shutdown" not in server.stderr


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_two_servers_in_one_loop_both_end(number: Signals) -> None:
    with program("two_in_one_loop") as server:
        server.wait_line(" running on ", count=2)
        server.signal(number)
        assert server.wait_exit() == {SIGTERM: -SIGTERM, SIGINT: 130}[number]
        assert server.stderr.count("app: shutdown") == 2


def test_servers_of_one_loop_may_end_in_any_order() -> None:
    with program("three_that_end_as_they_began") as server:
        server.wait_line("app: one is left")
        server.stop(SIGTERM)
        assert server.stderr.count("app: shutdown") == 3
        assert server.stderr.count("app: own handler got SIGTERM") == 1
        assert "app: handlers are back: True" in server.stderr
        assert "app: returned" in server.stderr


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_server_inside_a_servers_lifespan_ends_with_it(loop: str, number: Signals) -> None:
    with program("with_an_inner_server", loop) as server:
        server.wait_line(" running on ", count=2)
        server.signal(number)
        assert server.wait_exit() == {SIGTERM: -SIGTERM, SIGINT: 0}[number]
        assert "app: shutdown" in server.stderr
        assert "app: inner ended" in server.stderr


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_server_inside_the_lifespan_of_a_served_application_ends_with_it(
    loop: str, number: Signals
) -> None:
    with Server("embedding_program:outer", "--loop", loop) as server:
        server.wait_line(" running on ", count=2)
        server.stop(number)
        assert "app: shutdown" in server.stderr
        assert "app: inner ended" in server.stderr


def test_a_start_that_fails_exits_with_3() -> None:
    with program("with_a_wrong_target", ready=False) as server:
        assert server.wait_exit() == 3
        assert "no_such_module" in server.stderr
        assert "hint:" in server.stderr
        assert "Traceback" not in server.stderr


def test_a_forked_child_ends_by_its_own_signal(loop: str) -> None:
    target = "fork_app:app"
    with Server(
        target,
        module="bridgehead_run",
        env={"LOOP": json.dumps(settings_of(loop)), "PYTHONWARNINGS": "ignore"},
    ) as server:
        child = server.ask("/fork").json()
        os.kill(child, SIGTERM)
        assert server.ask(f"/wait?pid={child}").json() == -SIGTERM
        assert server.ask("/hello").body == b"hello"
        server.signal(SIGTERM)
        assert server.wait_exit() == -SIGTERM
