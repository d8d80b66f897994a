"""A handler that blocks the loop holds nobody but those who need Python."""

from __future__ import annotations

import errno
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Server, request

ANSWERS = 9
# Of 5 ms each, as the handler counts them: on a machine that is slow to wake threads its sleeps are as long.
FEW_SLEEPS = 10


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("blocking_app:app", "--loop", loop, "--no-access-log", "--timeout-keep-alive", "1") as server:
        yield server


class Gates:
    """What handlers wait for without giving the loop back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for number in range(3):
            os.mkfifo(folder / str(number))

    def reached(self, number: int = 0) -> int:
        """A descriptor whose close lets the handler go on, once it waits here."""
        deadline = time.monotonic() + 15
        while True:
            try:
                return os.open(self.folder / str(number), os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                # Nobody has it open to read.
                if error.errno != errno.ENXIO or time.monotonic() > deadline:
                    raise
                time.sleep(0.001)


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(tmp_path)


def test_a_complete_answer_leaves_though_the_handler_blocks(server: Server, gates: Gates) -> None:
    with server.connect() as client:
        assert client.ask(f"/answer-then-block?gates={gates.folder}").body == b"answered"
        os.close(gates.reached())


def test_each_piece_leaves_though_the_handler_blocks_after_it(server: Server, gates: Gates) -> None:
    with server.connect() as client:
        client.send(request(f"/block-between?gates={gates.folder}"))
        for number in range(3):
            client.read_until(b"piece %d" % number)
            os.close(gates.reached(number))
        client.read_until(b"0\r\n\r\n")


def test_an_answer_leaves_within_a_few_sleeps_of_a_handler_that_blocks(
    server: Server, tmp_path: Path
) -> None:
    slept = []
    for number in range(ANSWERS):
        found = tmp_path / f"answer-{number}"
        with server.connect() as client:
            assert client.ask(f"/answer-then-sleep?found={found}").body == b"answered"
            found.touch()
        slept.append(server.note(found.name))
        found.unlink()
    assert statistics.median(slept) <= FEW_SLEEPS, slept


def test_a_piece_leaves_within_a_few_sleeps_of_a_handler_that_blocks(server: Server, tmp_path: Path) -> None:
    with server.connect() as client:
        client.send(request(f"/sleep-between?folder={tmp_path}&pieces={ANSWERS}"))
        for number in range(ANSWERS):
            client.read_until(b"piece %d." % number)
            (tmp_path / str(number)).touch()
        client.read_until(b"0\r\n\r\n")
    slept = [server.note(tmp_path.name) for _ in range(ANSWERS)]
    assert statistics.median(slept) <= FEW_SLEEPS, slept


def test_the_network_goes_on_while_the_loop_is_blocked(server: Server, gates: Gates) -> None:
    with server.connect() as blocked:
        blocked.send(request(f"/block?gates={gates.folder}"))
        held = gates.reached()
        for _ in range(20):
            with server.connect() as client:
                client.send(b"GET / HTTP/1.1\r\n\r\n")
                assert client.read_response().status == 400
        assert not blocked.is_readable()
        with server.connect() as waiting:
            waiting.send(request("/hello"))
            os.close(held)
            assert waiting.read_response().body == b"hello"
        assert blocked.read_response().body == b"at last"


@pytest.mark.runtimes
def test_an_idle_connection_ends_while_the_loop_is_blocked(server: Server, gates: Gates) -> None:
    with server.connect() as idle, server.connect() as blocked:
        assert idle.ask("/hello").body == b"hello"
        blocked.send(request(f"/block?gates={gates.folder}"))
        held = gates.reached()
        assert idle.read_some() == b""
        assert not blocked.is_readable()
        os.close(held)
        assert blocked.read_response().body == b"at last"
