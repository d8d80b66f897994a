"""The time between the word of a server's end and its end, in which clients are still sent to it."""

from __future__ import annotations

from signal import SIGTERM
from typing import Any

import pytest
from harness import Client, Server

from bridgehead.config import Config
from bridgehead.doubts import doubts
from bridgehead.patience import Patience
from bridgehead.sources import Given, resolve
from bridgehead.testing import ServerThread

KUBERNETES = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
# Longer than a test lasts: nothing here waits for its end but by a second signal.
LONG = ("--timeout-graceful-shutdown", "240", "--drain-delay", "120")
SAID = "each answer closes its connection"


async def hello(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - ASGI's
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


@pytest.mark.parametrize("runtime", ["fused", "threaded"])
def test_clients_are_let_in_and_served_until_a_second_signal_ends_the_delay(runtime: str) -> None:
    with Server("wire_app:app", "--runtime", runtime, *LONG) as server:
        kept, busy = server.connect(), server.connect()
        assert kept.ask("/ready").status == 200
        busy.send(b"POST /collect?name=upload HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nha")
        server.note("upload-began")
        server.signal(SIGTERM)
        server.wait_line(SAID)
        # Whoever comes anew, and whoever was there; and the application knows.
        for client in (server.connect(), server.connect(), kept):
            answer = client.ask("/ready")
            assert (answer.status, answer.closes) == (503, True)
            client.assert_closed()
        busy.send(b"lf!")
        answer = busy.read_response()
        assert (answer.json()["body"], answer.closes) == ("half!", True)
        busy.assert_closed()
        server.signal(SIGTERM)
        assert server.wait_exit() == -SIGTERM


def test_after_the_delay_it_ends_in_order() -> None:
    with Server("lifecycle_app:app", "--drain-delay", "0.2") as server:
        idle = server.connect()
        idle.assert_open()
        server.signal(SIGTERM)
        server.wait_line(SAID)
        idle.assert_closed()
        server.assert_ended_well()
        assert "app: shutdown" in server.stderr


def test_a_server_of_a_program_is_not_ready_from_the_first_word_and_waits_for_none_who_is_in_a_hurry() -> (
    None
):
    with ServerThread(hello, timeout_graceful_shutdown=240, drain_delay=120) as server:
        assert server.server.ready
        server.server.should_exit = True
        assert not server.server.ready
        server.logs.wait_for(SAID)
        with Client(("127.0.0.1", server.port)) as client:
            assert client.ask("/").closes
        server.server.force_exit = True
        server.stop()


def test_kubernetes_is_told_apart_by_its_variable_and_an_option_outranks_it() -> None:
    def delay(config: Config, environ: dict[str, str]) -> float:
        return Patience.of(config, environ).delay

    assert delay(Config(), {}) == 0
    assert delay(Config(), KUBERNETES) == 5
    assert delay(Config(drain_delay=0), KUBERNETES) == 0
    assert delay(Config(drain_delay=3), KUBERNETES) == 3
    # What is left is for those who come during the delay.
    assert delay(Config(timeout_graceful_shutdown=4), KUBERNETES) == 2


def test_the_delay_is_part_of_the_whole_and_comes_out_of_the_requests_time() -> None:
    for whole in (0, 0.5, 1, 4, 10, 25, 60):
        patience = Patience.of(Config(timeout_graceful_shutdown=whole), KUBERNETES)
        assert patience.whole == pytest.approx(max(whole, 1))
    patience = Patience.of(Config(), KUBERNETES)
    assert (patience.delay, patience.requests, patience.cancelling, patience.lifespan) == (5, 13, 2, 5)


def test_a_delay_that_leaves_too_little_is_cut_and_said_to_be() -> None:
    def said(delay: str) -> list[str]:
        return list(doubts(resolve([{"drain_delay": Given(value=delay, source="--drain-delay")}])))

    assert said("12s") == []
    assert said("20s") == ["--drain-delay is cut to 12.5 s, half of --timeout-graceful-shutdown."]
