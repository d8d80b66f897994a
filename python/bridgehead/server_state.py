"""What uvicorn's servers say of themselves while they serve: how much there is to do, and that they live.

Not what operators are told (`admin.py`).

Invariant: what is counted has begun and not returned; nothing of it can be looked into.
"""

import time
from collections.abc import Iterator, Set
from functools import cached_property
from typing import Any

from bridgehead.server_config import Config

_TICKS_A_SECOND = 10


class _Busy:
    """One request that has not returned: it is counted, and it cannot be looked into."""

    def __init__(self, owner: "Stateful") -> None:
        self._owner = owner

    def shutdown(self) -> None:
        """As a connection of uvicorn's is told to end: what is idle closes, what runs may finish."""
        self._owner.let_nobody_in()


class _Running(Set[_Busy]):
    """As many members as there are requests that have not returned."""

    def __init__(self, owner: "Stateful") -> None:
        self._owner = owner

    def __len__(self) -> int:
        return self._owner.running

    def __iter__(self) -> Iterator[_Busy]:
        return iter([_Busy(self._owner) for _ in range(len(self))])

    def __contains__(self, member: object) -> bool:
        return isinstance(member, _Busy) and len(self) > 0


class ServerState:
    """What a server has to do. Idle connections are not among them: they hold nobody up."""

    def __init__(self, owner: "Stateful | None" = None) -> None:
        self.connections: Set[Any] = set() if owner is None else _Running(owner)
        self.tasks: Set[Any] = set() if owner is None else _Running(owner)
        self.default_headers: list[tuple[bytes, bytes]] = []


class Stateful:
    """As much of a server as says what it does."""

    config: Config
    last_notified = 0.0

    @property
    def running(self) -> int:
        """How many requests have not returned yet."""
        raise NotImplementedError

    def let_nobody_in(self) -> None:
        """Close who is idle, let running requests finish, and take no new ones."""
        raise NotImplementedError

    @cached_property
    def server_state(self) -> ServerState:
        """What there is to do. Made for who looks: it knows its server, which is then not freed at once."""
        return ServerState(self)

    async def _notify(self, counter: int) -> None:
        """Tell who wants to hear of it that the server lives: every `timeout_notify` seconds."""
        callback = self.config.callback_notify
        if callback is not None and counter % _TICKS_A_SECOND == 0:
            now = time.monotonic()
            if now - self.last_notified > self.config.timeout_notify:
                self.last_notified = now
                await callback()
