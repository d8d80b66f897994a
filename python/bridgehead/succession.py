"""A worker that succeeds this process's own server, and its parent: a thread first, then this process.

Not the server (`alone.py`), and not what the parent does (`supervisor/crew.py`).

Invariant: from the first worker on there is one parent, which knows of all of them.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from bridgehead._native import Sheets
from bridgehead.admin import Desk
from bridgehead.config import Config
from bridgehead.home import Home
from bridgehead.sockets import Bound
from bridgehead.station import OWN_PLACE
from bridgehead.supervisor.crew import Crew
from bridgehead.supervisor.figures import Figures
from bridgehead.supervisor.handover import Handover
from bridgehead.supervisor.hired import Start, Terms
from bridgehead.supervisor.slots import Slots


class Passed:
    """Signals that another thread hands on."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)

    def fileno(self) -> int:
        """Readable when there is something to take."""
        return self._reader.fileno()

    def take(self) -> list[signal.Signals]:
        """What came since it was last taken."""
        with suppress(BlockingIOError):
            return [signal.Signals(number) for number in self._reader.recv(4096) if number]
        return []

    def tell(self, number: int = 0) -> None:
        """Hand a signal on; 0 only wakes who waits."""
        self._writer.send(bytes([number]))


class Succession:
    """Begins when it is made. One of the two is called, on a thread of its own."""

    def __init__(
        self,
        config: Config,
        home: Home,
        ready: Callable[[], object],
        failed: Callable[[], object],
        figures: Figures | None,
    ) -> None:
        """`figures`: what this process counts, at its own place, if anybody wants to know."""
        self._config, self._home = config, home
        self._figures = figures
        self._when_ready, self._when_failed = ready, failed
        self._passed = Passed()
        self._thread: threading.Thread | None = None
        self._is_left = False  # whether nobody takes what is passed on any more

    def begin(self, bound: Sequence[Bound], why: Start) -> None:
        """Start a worker on these sockets, which are the parent's from here on."""
        self._slots = Slots([bound])
        left = None if self._figures is None else (None, os.dup(self._figures.fileno()))
        self._terms = Terms(self._config, self._home, self._slots, left)
        if self._figures is not None:
            self._terms.memory.take_place(OWN_PLACE)
        self._crew = Crew(self._terms, self._when_ready, why=why)
        self._thread = threading.Thread(target=self._run, name="bridgehead-parent", daemon=True)
        self._thread.start()

    @property
    def sheets(self) -> Sheets:
        """What the successor counts."""
        return self._terms.figures.sheets

    def tell(self, number: int) -> None:
        """What a parent is told by signals. Once nobody hears it here, the next program does."""
        if self._is_left:
            signal.pthread_kill(threading.get_ident(), number)  # blocked: it waits
        else:
            self._passed.tell(number)

    def end(self) -> None:
        """Wait until nobody is left, once that was told."""
        if self._thread is not None:
            self._thread.join()

    def become_parent(self, told: Callable[[], bool], desk: Desk | None) -> NoReturn:
        """This process has nothing else to do any more; what its application has left behind goes.

        `told`: whether a signal has come meanwhile, which is for the parent. `desk`: it answers operators
        until then.
        """
        self._crew.leave()
        self._passed.tell()
        self.end()
        if self._figures is not None:
            self.sheets.count_end("stopped")
            self.sheets.give_up(OWN_PLACE)
            self._terms.memory.leave_place(OWN_PLACE)
        self._is_left = True
        for number in self._passed.take():
            self.tell(number)
        os.chdir(self._home.folder or os.curdir)
        operators = [] if desk is None else desk.leave()
        handover = Handover.of(self._terms, self._crew, operators, anew=False)
        if told():
            self.tell(signal.SIGTERM)
        handover.execute()

    def _run(self) -> None:
        try:
            self._crew.run(self._passed)
        except SystemExit:  # it has said why
            self._when_failed()
