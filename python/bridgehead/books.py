"""What a process counts, and who may ask: its operators (`admin.py`), and its application (`diagnostics.py`).

Invariant: they may from before the application's startup until after its shutdown.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

from bridgehead import vigil
from bridgehead._native import Sheet, Sheets
from bridgehead.admin import Desk
from bridgehead.config import Config
from bridgehead.diagnostics import Watched
from bridgehead.station import Station


class Books:
    """Of one server, on the loop that runs."""

    def __init__(self, config: Config, station: Station | None, make_sheet: Callable[[], Sheet]) -> None:
        sheet = make_sheet() if station is None else station.sheet
        self._desk: Desk | None = None
        self._slow_step = config.slow_step
        if station is None:  # of one worker among several its parent tells operators
            sheet.begin()
            self._desk = Desk(config, sheet)
        self.watched = Watched(asyncio.get_running_loop(), sheet, among_others=station is not None)
        self.watched.begin()

    def show(self, figures: Sheets) -> None:
        """Tell operators of these from here on."""
        if self._desk is not None:
            self._desk.show(figures)

    def hand_over_desk(self) -> Desk | None:
        """It goes on to answer operators when this is closed, and is the caller's."""
        desk, self._desk = self._desk, None
        return desk

    def vigil(self, what: str) -> AbstractContextManager[None]:
        """Have it told what holds the loop while no network serves on it, but the application does this."""
        return vigil.over(self.watched, self._slow_step, what)

    def close(self) -> None:
        """Nobody is told any more."""
        self.watched.end()
        if self._desk is not None:
            self._desk.close()
