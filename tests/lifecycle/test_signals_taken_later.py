"""Handlers that the application sets while it is served: it gets the signal, and we stop, however soon."""

from __future__ import annotations

from signal import SIGINT, SIGTERM, Signals

import pytest
from harness import UVICORN, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="under uvicorn the signal is the application's alone")

SIGNALS = [SIGTERM, SIGINT]
WAYS = [
    ("module", SIGTERM),
    ("imported", SIGINT),
    ("loop", SIGINT),
    ("loop", SIGTERM),
    ("removed", SIGTERM),
    ("ignored", SIGINT),
]


def assert_both_got(server: Server, number: Signals) -> None:
    server.assert_ended_well()
    assert server.stderr.count(f"app: own handler got {number.name}") == 1


@pytest.mark.parametrize(("way", "number"), WAYS)
@pytest.mark.parametrize("where", ["take", "task"])
def test_a_handler_and_a_signal_at_once_end_the_server(
    loop: str, where: str, way: str, number: Signals
) -> None:
    with Server("signals_app:app", "--loop", loop) as server:
        assert server.ask(f"/{where}?way={way}&number={number}").body == b"taken"
        assert_both_got(server, number)
        assert "app: shutdown" in server.stderr


@pytest.mark.parametrize(("way", "number"), WAYS)
def test_a_handler_and_a_signal_during_startup_end_the_server(loop: str, way: str, number: Signals) -> None:
    with Server(f"signals_app:at_startup_{way}_{number:d}", "--loop", loop, ready=False) as server:
        assert_both_got(server, number)
        assert " running on " not in server.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_the_middle_of_setting_a_handler_ends_the_server(loop: str, number: Signals) -> None:
    with Server("signals_app:app", "--loop", loop) as server:
        client = server.connect()
        client.send(request(f"/again?number={number}"))
        server.wait_line("app: again began")
        server.signal(number)
        assert client.read_response().body == b"got it"
        assert_both_got(server, number)
