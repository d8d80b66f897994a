"""The server of a worker among several: serves its slot, and stands in at the others'.

Not another server: how it tells its parent, and ends when that says so, is `obedient.py`'s.

Invariant: a stop has the whole time that the operator gave for it; its parent says where clients find it.
"""

import os
import socket
import time

from bridgehead import forks
from bridgehead.obedient import Obedient
from bridgehead.parent import Parent
from bridgehead.patience import Patience
from bridgehead.server_config import Config
from bridgehead.station import Station

_LAST_WORDS = 1.0  # seconds in which it is asked what holds a stop, before its parent's patience ends


class Member(Obedient):
    """One of several."""

    def __init__(self, config: Config, parent: Parent, recall: int, station: Station) -> None:
        super().__init__(config, parent, recall)
        self._station = self._others = station
        self._until: float | None = None  # when a stop is over that has begun
        forks.register(station.sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server. Kept open, another's socket would let clients wait in vain once that one is gone."""
        forks.forget(self._others.sockets)
        self._others.close()
        await super().shutdown(sockets)

    def _patience(self) -> Patience:
        if self.config.reload:
            return super()._patience()
        if self._parent.retires_us:
            return Patience.of_retiring(self.config)
        return Patience.of(self.config, os.environ)

    def _time(self, usual: float) -> float:
        """One time for all of a stop, unless somebody waits for it who has saved a file."""
        if self.config.reload:
            return usual
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._patience().longest - _LAST_WORDS
        return max(0.0, self._until - now)
