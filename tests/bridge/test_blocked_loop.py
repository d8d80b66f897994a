"""A handler that blocks the loop holds nobody but those who need Python."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from harness import Server, request

BLOCK = 2.0  # seconds; what must not wait for it gets half of that, on a busy machine
SOON = 0.05  # seconds, in the best of a few tries: a tick of the standby is a tenth of that
TRIES = 5


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("blocking_app:app", "--loop", loop, "--no-access-log", "--timeout-keep-alive", "1") as server:
        yield server


def test_a_complete_answer_comes_soon_though_the_handler_blocks(server: Server) -> None:
    def took() -> float:
        with server.connect() as client:
            began = time.monotonic()
            assert client.ask("/answer-then-block?seconds=0.5").body == b"answered"
            return time.monotonic() - began

    assert server.ask("/hello").body == b"hello"
    assert any(took() < SOON for _ in range(TRIES))


def test_each_piece_comes_soon_though_the_handler_blocks_after_it(server: Server) -> None:
    def took() -> float:
        """How late the latest was."""
        came = []
        with server.connect() as client:
            client.send(request("/block-between?seconds=0.5"))
            for number in range(3):
                client.read_until(b"piece %d" % number)
                came.append(time.monotonic())
        # One clock for all processes.
        late: list[float] = [arrival - server.note("sent") for arrival in came]
        return max(late)

    assert server.ask("/hello").body == b"hello"
    assert any(took() < SOON for _ in range(TRIES))


def test_a_complete_answer_leaves_before_the_handler_blocks(server: Server) -> None:
    with server.connect() as client:
        began = time.monotonic()
        assert client.ask(f"/answer-then-block?seconds={BLOCK}").body == b"answered"
        assert time.monotonic() - began < BLOCK / 2


def test_each_piece_leaves_though_the_handler_blocks_after_it(server: Server) -> None:
    assert server.ask("/hello").body == b"hello"
    with server.connect() as client:
        began = time.monotonic()
        client.send(request(f"/block-between?seconds={BLOCK}"))
        for number in range(3):
            client.read_until(b"piece %d" % number)
            assert time.monotonic() - began < BLOCK * (number + 0.5)


def test_the_network_goes_on_while_the_loop_is_blocked(server: Server) -> None:
    assert server.ask("/hello").body == b"hello"
    with server.connect() as blocked:
        began = time.monotonic()
        blocked.send(request(f"/block?seconds={BLOCK}"))
        time.sleep(0.1)  # not for readiness: the request has to be in the handler, wherever that is
        for _ in range(20):
            with server.connect() as client:
                client.send(b"GET / HTTP/1.1\r\n\r\n")
                assert client.read_response().status == 400
        assert time.monotonic() - began < BLOCK
        with server.connect() as waiting:
            waiting.send(request("/hello"))
            assert waiting.read_response().body == b"hello"
        assert blocked.read_response().body == b"at last"


def test_an_idle_connection_ends_while_the_loop_is_blocked(server: Server) -> None:
    with server.connect() as idle, server.connect() as blocked:
        assert idle.ask("/hello").body == b"hello"
        blocked.send(request("/block?seconds=4"))
        assert idle.read_some() == b""
        assert not blocked.is_readable()
        assert blocked.read_response().body == b"at last"
