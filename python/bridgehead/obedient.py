"""The server of a child process: tells its parent how far it has come, and ends when that says so.

Not another server: how it starts and ends is `server.py`'s, its signals are `command.py`'s.

Invariant: a parent that says stop after a signal has come is no second signal; whatever holds a stop is named
by this process before its parent kills it.
"""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

from bridgehead.channel import SILENCE, Stage
from bridgehead.command import CommandServer
from bridgehead.errors import EXIT_OVERDUE
from bridgehead.parent import Parent
from bridgehead.patience import Patience
from bridgehead.server_config import Config


class Obedient(CommandServer):
    """Serves on sockets that its parent holds, until it calls them back."""

    def __init__(self, config: Config, parent: Parent, recall: int) -> None:
        super().__init__(config)
        self._parent = parent
        self._recall = recall

    def _look_ahead(self) -> None:
        """Its parent has the addresses."""

    def _patience(self) -> Patience:
        """Whoever saved a file is waiting for the requests, not for the rest."""
        return Patience.short_for_requests(self.config)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The parent's word counts as a signal."""
        with super().capture_signals():
            self._parent.calls(self._obey, asyncio.get_running_loop())
            yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server, and say so."""
        await super().startup(sockets)
        if self.started:
            self._parent.tell(Stage.READY)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server, and say so before and after."""
        self._promise(Stage.STOPPING, self._time(self._patience().for_requests + SILENCE))
        await super().shutdown(sockets)
        self._promise(Stage.OVER, self._time(SILENCE))

    async def _end_lifespan(self, end: float) -> None:
        """Who saved a file does not wait for it as well for as long as requests might have taken."""
        self._promise(Stage.STOPPING, self._time(self._patience().lifespan + SILENCE))
        await super()._end_lifespan(end)

    def _obey(self) -> None:
        """On the thread that hears the parent: the loop may be held by something."""
        self._promise(Stage.STOPPING, self._time(SILENCE))
        self._stop()

    def _time(self, usual: float) -> float:
        """Seconds until there is something to say again, or this process ends itself."""
        return usual

    def _promise(self, stage: Stage, within: float) -> None:
        self._control.expect_end(within, EXIT_OVERDUE)
        self._parent.tell(stage, within=within)
