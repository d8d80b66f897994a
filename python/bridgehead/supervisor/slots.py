"""The listening sockets of several workers: bound once by the parent, and kept for its whole life.

With SO_REUSEPORT each slot has a socket of its own, and the kernel divides clients between them; elsewhere,
and of what somebody else has opened, all workers share one. Not who accepts there (`rota.rs`).

Invariant: an address is taken without SO_REUSEPORT first, so it is ours alone or the start fails; and no
socket is closed while there may be workers, since closing one resets the clients that wait in it.
"""

import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Self

from bridgehead._native import shut_gates
from bridgehead.config import Config
from bridgehead.sockets import Bound, Kind, bind

# Elsewhere the option exists, but one socket gets all clients.
_DIVIDES = sys.platform == "linux"


class Slots:
    """So many slots, each with a socket for each address."""

    def __init__(self, slots: Sequence[Sequence[Bound]]) -> None:
        self._slots = [*slots]
        self._first = slots[0]

    @classmethod
    def bound(cls, config: Config, count: int) -> Self:
        """On the addresses of a configuration."""
        with ExitStack() as undo:
            first = bind(config.addresses(), backlog=config.backlog)
            for each in first:
                undo.callback(each.close)
            slots = [first]
            for _ in range(1, count):
                slots.append([_another(each, config.backlog) for each in first])
                for mine in slots[-1]:
                    undo.callback(mine.close)
            undo.pop_all()
        return cls(slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Sequence[Bound]]:
        return iter(self._slots)

    @property
    def labels(self) -> list[str]:
        """Where clients find us."""
        return [each.label for each in self._first]

    def number(self, post: int) -> int:
        """The slot of a post; there may be more posts than slots."""
        return post % len(self._slots)

    def of(self, post: int) -> Sequence[Bound]:
        """Where the worker of this post lets clients in."""
        return self._slots[self.number(post)]

    def others(self, post: int) -> Iterator[tuple[int, Bound]]:
        """Where it stands in for others, each with its slot."""
        own = self.of(post)
        for number, bound in enumerate(self._slots):
            yield from ((number, each) for each in bound if each not in own)

    @property
    def listeners(self) -> list[socket.socket]:
        """All of them, each once."""
        return [each.socket for each in self._each()]

    def shut_gates(self) -> None:
        """Nobody new may knock; who waits is let in as before."""
        ours = (each.socket for each in self._each() if each.kind is Kind.TCP and not each.inherited)
        shut_gates([each.fileno() for each in ours])

    def _each(self) -> Iterable[Bound]:
        return {id(each): each for slot in self._slots for each in slot}.values()

    def close(self) -> None:
        """Nobody listens any more."""
        for slot in self._slots:
            for each in slot:
                each.close()


def _another(first: Bound, backlog: int) -> Bound:
    """A socket of the same address, or the same one where that cannot be."""
    if first.kind is not Kind.TCP or first.inherited or not _DIVIDES:
        return first
    try:
        first.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        return replace(first, socket=_bind_beside(first.socket, backlog))
    except OSError:
        return first


def _bind_beside(first: socket.socket, backlog: int) -> socket.socket:
    with ExitStack() as undo:
        sock = undo.enter_context(socket.socket(first.family, socket.SOCK_STREAM))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if first.family == socket.AF_INET6:
            only = first.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        sock.bind(first.getsockname())
        sock.listen(backlog)
        sock.setblocking(False)
        undo.pop_all()
    return sock
