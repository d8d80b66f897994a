"""The sockets that a server listens on, as programs that know asyncio look at them.

Not how they are bound (`sockets.py`).

Invariant: a socket that is closed is not shown.
"""

import asyncio
import socket
from collections.abc import Sequence

from bridgehead.sockets import Bound
from bridgehead.worker import Worker


class Listening:
    """Some of the sockets that a server listens on; as much of an `asyncio.Server` as people look at."""

    def __init__(self, bound: Sequence[Bound], worker: Worker) -> None:
        self._bound = bound
        self._worker = worker

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """The sockets, none once they are closed; `sockets[0].getsockname()` tells the port."""
        return tuple(each.socket for each in self._bound if each.socket.fileno() >= 0)

    def is_serving(self) -> bool:
        """Whether clients are let in."""
        return bool(self.sockets)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the server."""
        return self._worker.loop

    async def wait_closed(self) -> None:
        """Until the server's last connection is closed: one network listens on all its sockets."""
        await self._worker.wait_closed()

    def close(self) -> None:
        """Let no more clients in on these sockets. Connections go on, idle ones too."""
        for each in self._bound:
            each.socket.close()
        self._worker.shut(self._bound)
