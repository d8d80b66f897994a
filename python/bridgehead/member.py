"""The server of a worker among several: serves its slot, and stands in at the others'.

Not another server: how it tells its parent, and ends when that says so, is `obedient.py`'s.

Invariant: a stop has the whole time that the operator gave for it; its parent says where clients find it.
"""

import os

from bridgehead import forks
from bridgehead.obedient import Obedient
from bridgehead.parent import Parent
from bridgehead.patience import Patience
from bridgehead.server_config import Config
from bridgehead.station import Station


class Member(Obedient):
    """One of several."""

    def __init__(self, config: Config, parent: Parent, recall: int, station: Station) -> None:
        super().__init__(config, parent, recall)
        self._station = station
        forks.register(station.sockets)

    def _patience(self) -> Patience:
        if self._parent.retires_us:
            return Patience.of_retiring(self.config)
        return Patience.of(self.config, os.environ)
