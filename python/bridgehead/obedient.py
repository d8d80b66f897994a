"""The server of a child process: tells its parent how far it has come, and ends when that says so.

Not another server: how it starts and ends is `server.py`'s, its signals are `command.py`'s.

Invariant: a parent that says stop after a signal has come is no second signal.
"""

import asyncio
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager

from bridgehead.channel import Stage
from bridgehead.command import CommandServer
from bridgehead.parent import Parent
from bridgehead.patience import Patience
from bridgehead.server_config import Config


class Obedient(CommandServer):
    """Serves on sockets that its parent holds, until it calls them back."""

    def __init__(self, config: Config, parent: Parent, recall: int) -> None:
        super().__init__(config)
        self._parent = parent
        self._recall = recall

    def _patience(self) -> Patience:
        """Whoever saved a file is waiting for the requests, not for the rest."""
        return Patience.short_for_requests(self.config)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The parent's word counts as a signal."""
        with super().capture_signals():
            self._parent.calls(self._stop, asyncio.get_running_loop())
            yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server, and say so."""
        await super().startup(sockets)
        if self.started:
            self._parent.tell(Stage.READY)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server, and say so before and after: what is left running has the rest of the time."""
        longest = self._patience().longest
        until = time.monotonic() + longest
        self._parent.tell(Stage.STOPPING, within=longest)
        await super().shutdown(sockets)
        self._parent.tell(Stage.OVER, within=max(0.0, until - time.monotonic()))
