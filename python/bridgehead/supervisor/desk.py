"""The control socket: who asks there is told how the workers fare, and may have them replaced or stopped.

Not what is done (`questions.py`), and not the command that asks (`ctl.py`). A question is a line of JSON, and
so is its answer.

Invariant: nobody but the server's own user gets in, and nobody who says nothing holds up anything.
"""

import json
import os
import selectors
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from bridgehead.address import UnixAddress
from bridgehead.sockets import Bound, bind

_LONGEST = 4096  # bytes of a question
_AT_ONCE = 16  # who comes beyond that waits
_BACKLOG = 128
_OURS_ALONE = 0o600

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Refused(Exception):  # noqa: N818 (an answer)
    """What was asked for cannot be done; the words say why."""


def listen(path: str) -> Bound:
    """A socket that other users cannot reach, from its first moment on."""
    before = os.umask(0o777 ^ _OURS_ALONE)
    try:
        [bound] = bind([UnixAddress(path=path)], backlog=_BACKLOG)
    finally:
        os.umask(before)
    os.chmod(path, _OURS_ALONE)
    return bound


class Desk:
    """Answers on a socket, as often as a selector says that something has come."""

    def __init__(self, bound: Bound, selector: selectors.BaseSelector, answer: Answer) -> None:
        self._bound = bound
        self._selector = selector
        self._answer = answer
        self._clients: dict[socket.socket, bytes] = {}
        selector.register(bound.socket, selectors.EVENT_READ, self._let_in)

    def close(self) -> None:
        """Answer nobody any more."""
        for client in list(self._clients):
            self._leave(client)
        self._selector.unregister(self._bound.socket)
        self._bound.close()

    def _let_in(self) -> None:
        with suppress(OSError):
            client, _ = self._bound.socket.accept()
            client.setblocking(False)
            if len(self._clients) == _AT_ONCE:  # the one that has been silent for longest
                self._leave(next(iter(self._clients)))
            self._clients[client] = b""
            self._selector.register(client, selectors.EVENT_READ, lambda: self._hear(client))

    def _hear(self, client: socket.socket) -> None:
        try:
            more = client.recv(_LONGEST)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        said = self._clients[client] + more
        if not more or len(said) > _LONGEST:
            self._leave(client)
            return
        self._clients[client] = said
        if b"\n" in said:
            with suppress(OSError):
                client.send(json.dumps(self._judge(said)).encode() + b"\n")
            self._leave(client)

    def _judge(self, said: bytes) -> Mapping[str, Any]:
        try:
            question = json.loads(said)
            if not isinstance(question, dict):
                raise Refused("a question is an object")
            return {"ok": True, **self._answer(question)}
        except (ValueError, RecursionError, Refused) as problem:
            return {"ok": False, "error": str(problem)}

    def _leave(self, client: socket.socket) -> None:
        del self._clients[client]
        self._selector.unregister(client)
        client.close()
