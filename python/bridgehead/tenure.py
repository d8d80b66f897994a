"""How long a process serves that is the only one of its server, and has nobody to count for it.

Not how long that is (`lifetime.py`), nor what comes then (`server.py`, `alone.py`).

Invariant: without a limit there is none of this, and its network counts nothing.
"""

import os
import time
from collections.abc import Callable
from typing import Self

from bridgehead.lifetime import Lifetime, resident
from bridgehead.station import Posting, Station

LOOK = 0.5  # seconds between two looks; whoever comes earlier sees nothing


class Tenure:
    """Of this process. `station` is where its network counts."""

    def __init__(self, lifetime: Lifetime, clock: Callable[[], float] = time.monotonic) -> None:
        # Several processes' memory, for a board of one.
        from bridgehead.supervisor.figures import Figures
        from bridgehead.supervisor.memory import Memory

        self._lifetime = lifetime
        self._clock = clock
        self._began = self._looked = clock()
        self._memory = Memory()
        self._place = self._memory.take_place()
        figures = Figures()
        board, sheets = os.dup(self._memory.fileno()), os.dup(figures.fileno())
        self.station = Station(
            Posting(board=board, sheets=sheets, slot=0, place=self._place, others=(), bound=())
        )
        figures.close()

    @classmethod
    def of(cls, lifetime: Lifetime) -> Self | None:
        """None: it has no end."""
        return cls(lifetime) if lifetime.is_limited else None

    def ended_by(self) -> str | None:
        """Why it is over; None: it is not."""
        if self._clock() - self._looked < LOOK:
            return None
        self._looked = self._clock()
        _, _, requests = self._memory.board.look(self._place)
        seconds, memory = self._clock() - self._began, resident(os.getpid())
        return self._lifetime.ended_by(requests=requests, seconds=seconds, memory=memory)

    def close(self) -> None:
        """Let go of the memory; a network that is left has it for itself."""
        self._memory.close()
