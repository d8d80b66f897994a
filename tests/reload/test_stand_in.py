"""What answers while there is no application, turn by turn: events of one turn may undo each other."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bridgehead.stand_in import _AT_ONCE, StandIn

Connect = Callable[[], socket.socket]


class Turns:
    """A stand-in, its listener, and the loop around it in single steps."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.selector = stack.enter_context(selectors.DefaultSelector())
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
        self.stand_in = StandIn(self.selector, [self.listener])
        stack.callback(self.stand_in.close)

    def connect(self) -> socket.socket:
        return self._stack.enter_context(socket.create_connection(self.listener.getsockname(), 10))

    def turn(self, before: Callable[[], object] = lambda: None) -> None:
        """All that is told at once; `before` is what another event of the same turn does first."""
        events = self.selector.select(10)
        before()
        for key, _ in events:
            key.data()


@pytest.fixture
def turns() -> Iterator[Turns]:
    with ExitStack() as stack:
        yield Turns(stack)


def test_one_that_gives_way_to_another_may_speak_in_the_same_turn(turns: Turns) -> None:
    turns.stand_in.begin("not there")
    clients = []
    for _ in range(_AT_ONCE):
        clients.append(turns.connect())
        turns.turn()
    last = turns.connect()
    for each in clients:
        each.sendall(b"GET / HTTP/1.1\r\n\r\n")
    turns.turn()
    with pytest.raises(ConnectionResetError):
        clients[0].recv(1)
    assert clients[1].recv(12) == b"HTTP/1.1 503"
    last.sendall(b"GET / HTTP/1.1\r\n\r\n")
    turns.turn()
    assert last.recv(12) == b"HTTP/1.1 503"


def test_who_knocks_in_the_turn_that_ends_it_is_left_to_the_application(turns: Turns) -> None:
    turns.stand_in.begin("not there")
    turns.connect()
    turns.turn(turns.stand_in.end)
    turns.listener.settimeout(10)
    turns.listener.accept()[0].close()


def test_the_answer_is_whole_and_says_the_sentence(turns: Turns) -> None:
    turns.stand_in.begin("not there")
    client = turns.connect()
    turns.turn()
    client.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n")
    turns.turn()
    client.sendall(b"\r\n")
    turns.turn()
    head, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")
    assert body == b"not there\n"
    assert b"content-length: 10\r\n" in head
