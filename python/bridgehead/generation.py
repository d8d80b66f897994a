"""The processes that serve one version of the application, under `--reload`: as many as `--workers` says.

Not when a version is over (`reload.py`), and not one process's life (`offspring.py`).

Invariant: the others are started once the first one serves, so a version that does not start is told of once.
"""

import selectors
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from bridgehead import log
from bridgehead.offspring import Offspring
from bridgehead.supervisor.hired import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """How many there are to be, who starts one at a slot, and what is done when the first one serves."""

    count: int
    hire: Callable[[int, Start], Offspring]
    announce: Callable[[], object] | None = None


class _Stage(Enum):
    FIRST = auto()  # one was started
    ALL = auto()  # the others were started
    SETTLED = auto()  # all of them serve, or are told to end


class Generation:
    """Begins with the first of them when it is made."""

    def __init__(self, staff: Staff, selector: selectors.BaseSelector, why: Start) -> None:
        self._why = why
        self._staff = staff
        self._selector = selector
        self._children: list[Offspring] = []
        self._stage = _Stage.FIRST
        self._hire(0)

    @property
    def is_over(self) -> bool:
        """Whether nobody is left."""
        return not self._children

    @property
    def patience(self) -> float | None:
        """Seconds until somebody is overdue; None while nobody is."""
        times = (child.patience for child in self._children)
        return min((each for each in times if each is not None), default=None)

    def stop(self) -> None:
        """Everybody is to end."""
        self._stage = _Stage.SETTLED
        for child in self._children:
            child.stop()

    def take_back(self) -> None:
        """Nobody lets clients in from here on, whatever its loop does."""
        for child in self._children:
            child.take_back()

    def reopen(self) -> None:
        """Everybody is to open its logs again."""
        for child in self._children:
            child.reopen()

    def kill(self) -> None:
        """Now."""
        for child in self._children:
            child.kill()

    def ended(self) -> Iterator[Offspring]:
        """Those that are gone by now; who should be is killed."""
        for child in list(self._children):
            if child.patience == 0.0 and not child.must_wait(self._children):
                if not child.is_being_ended:
                    sentence = "Server process [%d] %s: %s"
                    log.logger().warning(sentence, child.pid, child.delay, child.verdict)
                child.end_by_force()
            if child.has_ended():
                self._children.remove(child)
                self._ignore(child)
                child.close()
                yield child

    def _hire(self, slot: int) -> None:
        child = self._staff.hire(slot, self._why)
        self._children.append(child)
        self._selector.register(child, selectors.EVENT_READ, lambda: self._hear(child))

    def _hear(self, child: Offspring) -> None:
        if not child.hear():
            self._ignore(child)
        if self._stage is _Stage.FIRST and child.served:
            self._stage = _Stage.ALL
            if self._staff.announce is not None:
                self._staff.announce()
            for slot in range(1, self._staff.count):
                self._hire(slot)
        serving = sum(child.served for child in self._children)
        if self._stage is _Stage.ALL and serving == self._staff.count > 1:
            self._stage = _Stage.SETTLED
            log.workers_ready(serving)

    def _ignore(self, child: Offspring) -> None:
        with suppress(KeyError):  # it has hung up, and is ignored already
            self._selector.unregister(child)
