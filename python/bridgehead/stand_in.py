"""Answers for an application that could not be started: 503, and a sentence that says where to look.

Not a server: it looks at no request, except whether it is for a head only.

Invariant: one that is slow, silent or one of too many is closed; nobody is waited for.
"""

import selectors
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bridgehead import log

_AT_ONCE = 64  # who comes then takes the place of who came first
_LONGEST_HEAD = 65536
_SECONDS = 10.0  # for a whole head
_LINGERING = 2.0  # for reading what a client still sends, since closing before that would reset the answer
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(eq=False, slots=True)
class _Visitor:
    socket: socket.socket
    name: str
    deadline: float
    head: bytearray = field(default_factory=bytearray)
    answered: bool = False


class StandIn:
    """Holds the sockets' other end while there is no application."""

    def __init__(self, selector: selectors.BaseSelector, listeners: Iterable[socket.socket]) -> None:
        self._selector = selector
        self._listeners = list(listeners)
        self._visitors: list[_Visitor] = []
        self._sentence = ""

    def begin(self, sentence: str) -> None:
        """Let clients in, and tell them this."""
        if not self._sentence:
            for each in self._listeners:
                self._selector.register(each, selectors.EVENT_READ, self._greeter(each))
        self._sentence = sentence

    def end(self) -> None:
        """Let nobody in any more: they are the application's. Who has not asked yet may come again."""
        if self._sentence:
            for each in self._listeners:
                self._selector.unregister(each)
        self._sentence = ""
        for visitor in [each for each in self._visitors if not each.answered]:
            self._close(visitor)

    @property
    def patience(self) -> float | None:
        """Seconds until `expire` has something to do."""
        if not self._visitors:
            return None
        return max(0.0, min(each.deadline for each in self._visitors) - time.monotonic())

    def expire(self) -> None:
        """Close those whose time is over."""
        now = time.monotonic()
        for visitor in [each for each in self._visitors if each.deadline <= now]:
            self._close(visitor)

    def close(self) -> None:
        """Close everybody."""
        self.end()
        for visitor in list(self._visitors):
            self._close(visitor)

    def _greeter(self, listener: socket.socket) -> Callable[[], None]:
        return lambda: self._greet(listener)

    def _greet(self, listener: socket.socket) -> None:
        if not self._sentence:  # it ended with an event that was told together with this one
            return
        try:
            client, address = listener.accept()
        except OSError:  # it has gone again, or there is no descriptor for it
            return
        client.setblocking(False)
        # As in the server's own lines, where a client of a Unix socket has none.
        name = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else ""
        visitor = _Visitor(socket=client, name=name, deadline=time.monotonic() + _SECONDS)
        if len(self._visitors) >= _AT_ONCE:
            self._close(self._visitors[0])
        self._visitors.append(visitor)
        self._selector.register(client, selectors.EVENT_READ, lambda: self._read(visitor))

    def _read(self, visitor: _Visitor) -> None:
        if visitor not in self._visitors:  # the same
            return
        try:
            more = visitor.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            self._close(visitor)
        elif not visitor.answered:
            visitor.head += more
            if _END_OF_HEAD in visitor.head or len(visitor.head) > _LONGEST_HEAD:
                self._answer(visitor)

    def _answer(self, visitor: _Visitor) -> None:
        log.refused(visitor.name, self._sentence)
        visitor.answered = True
        visitor.deadline = time.monotonic() + _LINGERING
        body = f"{self._sentence}\n".encode()
        head = (
            "HTTP/1.1 503 Service Unavailable\r\n"
            "content-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\n"
            "cache-control: no-store\r\n"
            "connection: close\r\n\r\n"
        ).encode()
        try:
            # A new connection has room for so little.
            visitor.socket.send(head if visitor.head.startswith(b"HEAD ") else head + body)
            visitor.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(visitor)

    def _close(self, visitor: _Visitor) -> None:
        self._visitors.remove(visitor)
        self._selector.unregister(visitor.socket)
        visitor.socket.close()
