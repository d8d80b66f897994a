"""`uvicorn.server`: uvicorn's `Server`, on our own: what it calls, and what is called on it.

Not how it serves (`bridgehead.server`).

Invariant: the steps and signals go through the methods that programs override.
"""

import signal
import socket
from typing import Any

from bridgehead import server
from bridgehead.compat.uvicorn.config import STARTUP_FAILURE, Config
from bridgehead.server_state import ServerState as ServerState

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(server.Server):
    """uvicorn's server."""

    config: Config
    calls_itself = "Uvicorn"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, start the application, let clients in."""
        await super().startup(sockets=sockets)
        if getattr(self.lifespan, "should_exit", False):
            raise SystemExit(STARTUP_FAILURE)

    def __getstate__(self) -> dict[str, Any]:
        """For the process that serves: the configuration, and what a subclass has added."""
        made = vars(Server(self.config)).keys()
        return {"config": self.config} | {
            name: value for name, value in vars(self).items() if name not in made
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Server.__init__(self, state["config"])
        vars(self).update(state)
