"""More clients than handshakes are made at once, of whom none comes to an end: row 73."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

import pytest
from harness import Client, Server
from secured import OURS, facts, hello

# As many as `handshake.rs` makes at once, and some more.
PLACES, MORE = 1024, 76


def allow_many_files() -> None:
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("tls_app:app", *OURS, "--log-level", "debug", preexec_fn=allow_many_files) as server:
        yield server


@contextlib.contextmanager
def crowd(server: Server, said: bytes) -> Iterator[list[Client]]:
    allow_many_files()
    with contextlib.ExitStack() as held:
        clients = []
        for _ in range(PLACES + MORE):
            clients.append(held.enter_context(Client(("127.0.0.1", server.port))))
            clients[-1].send(said)
        yield clients


@pytest.mark.parametrize("said", [hello()[:1], hello()[:-1]], ids=["a byte", "all but a byte"])
def test_who_has_not_said_all_of_a_hello_is_waited_for_by_nobody(server: Server, said: bytes) -> None:
    with crowd(server, said):
        facts(server)
        # It came before any of them had had its time.
        assert "no handshake came of it" not in server.stderr


def test_who_has_its_answer_and_says_nothing_gives_its_place_up_for_those_who_wait(server: Server) -> None:
    with crowd(server, hello()) as clients:
        facts(server)
        # Also for those who came behind it.
        assert clients[-1].read_exactly(1) == b"\x16"
        reason = "no handshake came of it: its client was waited for, and others for its place"
        server.wait_line(f"127.0.0.1:{clients[0].port}: {reason}")
