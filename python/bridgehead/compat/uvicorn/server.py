"""`uvicorn.server`: uvicorn's `Server`, on our own: what it calls, and what is called on it.

Not how it serves (`bridgehead.server`).

Invariant: the steps and signals go through the methods that programs override.
"""

import signal
from collections.abc import Coroutine
from typing import Any

from bridgehead import server
from bridgehead.compat.uvicorn._compat import asyncio_run as asyncio_run
from bridgehead.compat.uvicorn.config import STARTUP_FAILURE, Config
from bridgehead.compat.uvicorn.config import logger as logger
from bridgehead.server_state import ServerState as ServerState

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(server.Server):
    """uvicorn's server."""

    config: Config

    async def _unless_told(self, startup: Coroutine[Any, Any, None]) -> bool:
        """A lifespan that has failed says so by itself, and nobody is let in."""
        came = await super()._unless_told(startup)
        if getattr(self.lifespan, "should_exit", False):
            self._close_sockets()
            raise SystemExit(STARTUP_FAILURE)
        return came

    def __getstate__(self) -> dict[str, Any]:
        """For the process that serves: the configuration, and what a subclass has added."""
        made = vars(Server(self.config)).keys()
        return {"config": self.config} | {
            name: value for name, value in vars(self).items() if name not in made
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Server.__init__(self, state["config"])
        vars(self).update(state)
