"""What uvicorn's servers say of themselves while they serve: how much there is to do, and that they live.

Not what operators are told (`admin.py`).

Invariant: what is there to do has begun and not returned; nothing of it can be looked into.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bridgehead._native import Sheet
from bridgehead.lifetime import Lifetime
from bridgehead.patience import Patience
from bridgehead.server_config import Config

if TYPE_CHECKING:
    from bridgehead.worker import Worker

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
        self._owner = owner
        self.connections: Set[Any] = set() if owner is None else _Running(owner)
        self.tasks: Set[Any] = set() if owner is None else _Running(owner)

    @property
    def total_requests(self) -> int:
        """How many requests the application has had so far."""
        return 0 if self._owner is None else self._owner.begun

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """What each answer has now, unless the application says it itself."""
        if self._owner is None:
            return []
        from email.utils import formatdate

        config = self._owner.config
        date = [(b"date", formatdate(usegmt=True).encode())] if config.date_header else []
        return [*date, *config.encoded_headers]


class Stateful:
    """As much of a server as says what it does."""

    config: Config
    force_exit: bool
    last_notified = 0.0
    _worker: "Worker | None" = None
    _counts: dict[str, int] = {}  # noqa: RUF012 - replaced, and never written to
    _begun = 0  # of workers that are over

    @property
    def running(self) -> int:
        """How many requests have not returned yet."""
        return 0 if self._worker is None else self._worker.running

    @property
    def begun(self) -> int:
        """How many requests the application has had so far."""
        return self._begun + (0 if self._worker is None else self._worker.begun)

    def let_nobody_in(self) -> None:
        """Close who is idle, let running requests finish, and take no new ones."""
        if self._worker is not None:
            self._worker.drain()

    def counts(self) -> dict[str, int]:
        """How often clients were refused, cut off or kept waiting so far, by reason; see docs/limits.md."""
        return self._counts if self._worker is None else self._worker.counts()

    def _settle(self, worker: "Worker") -> None:
        """Its worker is over; what it has counted stays."""
        self._counts, self._begun = worker.counts(), self.begun
        self._worker = None

    def _patience(self) -> Patience:
        """How long the end may take."""
        return Patience.of(self.config, os.environ)

    def _sheet(self) -> Sheet:
        """Where it counts, if it has no place among others."""
        return Sheet()

    @cached_property
    def _lifetime(self) -> Lifetime:
        """How long it may serve. Drawn once: chance has a part in it."""
        return Lifetime(self.config)

    @property
    def limit_max_requests(self) -> int | None:
        """How many requests it serves before it ends; None is any number."""
        return self._lifetime.requests

    async def _wait_tasks_to_complete(self) -> None:
        """Until no request is left, or `force_exit`: for who ends a server by uvicorn's steps."""
        while self.running and not self.force_exit:
            await asyncio.sleep(1 / _TICKS_A_SECOND)

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
