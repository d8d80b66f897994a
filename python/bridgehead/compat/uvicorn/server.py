"""`uvicorn.server`: uvicorn's `Server`, on our own: what it calls, and what is called on it.

Not how it serves (`bridgehead.server`).

Invariant: the steps and signals go through the methods that programs override.
"""

import signal
import socket
import time
from collections.abc import Iterator, Set
from typing import Any

from bridgehead import server
from bridgehead.compat.uvicorn.config import STARTUP_FAILURE, Config

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TICKS_A_SECOND = 10


class _Busy:
    """One request that has not returned: it is counted, and it cannot be looked into."""

    def __init__(self, owner: "Server") -> None:
        self._owner = owner

    def shutdown(self) -> None:
        """As a connection of uvicorn's is told to end: what is idle closes, what runs may finish."""
        self._owner.let_nobody_in()


class _Running(Set[_Busy]):
    """As many members as there are requests that have not returned."""

    def __init__(self, owner: "Server") -> None:
        self._owner = owner

    def __len__(self) -> int:
        return self._owner.running

    def __iter__(self) -> Iterator[_Busy]:
        return iter([_Busy(self._owner) for _ in range(len(self))])

    def __contains__(self, member: object) -> bool:
        return isinstance(member, _Busy) and len(self) > 0


class ServerState:
    """What a server has to do. Idle connections are not among them: they hold nobody up."""

    def __init__(self, owner: "Server | None" = None) -> None:
        self.connections: Set[Any] = set() if owner is None else _Running(owner)
        self.tasks: Set[Any] = set() if owner is None else _Running(owner)
        self.default_headers: list[tuple[bytes, bytes]] = []


class Server(server.Server):
    """uvicorn's server."""

    config: Config
    calls_itself = "Uvicorn"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.last_notified = 0.0
        self.server_state = ServerState(self)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, start the application, let clients in."""
        await super().startup(sockets=sockets)
        if getattr(self.lifespan, "should_exit", False):
            raise SystemExit(STARTUP_FAILURE)

    async def on_tick(self, counter: int) -> bool:
        """Whether the server is to end; and whoever wants to hear of it that it is alive does."""
        notify = self.config.callback_notify
        if notify is not None and counter % _TICKS_A_SECOND == 0:
            now = time.monotonic()
            if now - self.last_notified > self.config.timeout_notify:
                self.last_notified = now
                await notify()
        return self.should_exit

    def _is_overridden(self, *names: str) -> bool:
        """Our own `on_tick` has nobody to tell unless there is a callback."""
        known = {"should_exit": server.Server.should_exit, "on_tick": Server.on_tick}
        changed = any(name in vars(self) or getattr(type(self), name) is not known[name] for name in names)
        return changed or self.config.callback_notify is not None

    def __getstate__(self) -> dict[str, Any]:
        """For the process that serves: the configuration, and what a subclass has added."""
        made = vars(Server(self.config)).keys()
        return {"config": self.config} | {
            name: value for name, value in vars(self).items() if name not in made
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Server.__init__(self, state["config"])
        vars(self).update(state)
