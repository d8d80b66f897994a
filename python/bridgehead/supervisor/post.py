"""One worker's post: who serves there, who is to succeed, who is leaving.

Not when all of them stop, nor what is said of them together (`crew.py`).

Invariant: whoever serves is not told to leave before its successor is ready, and one at most is coming.
"""

import time
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any

from bridgehead import log
from bridgehead.offspring import State
from bridgehead.supervisor.backoff import Backoff
from bridgehead.supervisor.hired import Hired, Start, Terms

_PAUSE = 0.5  # seconds, when the system lets nobody be started
# Who tells a worker to end may be telling its whole group, as Ctrl+C does, and then its parent hears it last.
_HEARSAY = 0.1


class Renewal(Enum):
    """What became of the last time that a new worker was asked for."""

    UNDERWAY = auto()
    DONE = auto()
    FAILED = auto()


class Post:
    """A slot's."""

    def __init__(self, slot: int, terms: Terms, grace: float, why: Start) -> None:
        self.slot = slot
        self._terms = terms
        self._grace = grace
        self.serving: Hired | None = None
        self.coming: Hired | None = None
        self._leaving: list[Hired] = []
        self._due: float | None = 0.0
        self._why: Start = why  # the one that is due, or was started last
        self._untold: int | None = None  # who ends by somebody's word, until that is said
        self._backoff = Backoff()
        self._not_before = 0.0  # when a successor is tried again that failed
        self.renewal = Renewal.DONE

    def __iter__(self) -> Iterator[Hired]:
        """Every process there is."""
        yield from (each for each in (self.serving, self.coming) if each is not None)
        yield from list(self._leaving)

    def written(self) -> dict[str, Any]:
        """For another program in this same process, which takes the post over."""
        return {
            "slot": self.slot,
            "serving": None if self.serving is None else self.serving.written(),
            "coming": None if self.coming is None else self.coming.written(),
            "leaving": [each.written() for each in self._leaving],
        }

    def take_over(self, written: Mapping[str, Any]) -> None:
        """What `written` wrote."""
        serving, coming = (
            None if written[each] is None else Hired(self.slot, self._terms, written[each])
            for each in ("serving", "coming")
        )
        self.serving, self.coming = serving, coming
        for each in written["leaving"]:
            self._leaving.append(Hired(self.slot, self._terms, each))
        self._due = None if self.serving or self.coming else 0.0
        self._why = "died"

    @property
    def failures(self) -> int:
        """How many in a row ended early."""
        return self._backoff.failures

    @property
    def patience(self) -> float | None:
        """Seconds until one is due to be started; None if none is."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def hire(self) -> Hired | None:
        """Start one. None: the system would not let us, and it is tried again later."""
        self._due = None
        if self._untold is not None:
            self._say_ordered(self._untold, "now")
            self._untold = None
        try:
            self.coming = Hired(self.slot, self._terms, self._why)
        except OSError as problem:
            wait = max(self._backoff.after(None), _PAUSE)
            self._due_in(wait, self._why)
            log.logger().error("A worker could not be started: %s. It is tried again in %g s.", problem, wait)
        return self.coming

    @property
    def may_be_renewed(self) -> bool:
        """Whether a successor may be tried that nobody has asked for."""
        return self.coming is None and self._due is None and time.monotonic() >= self._not_before

    def renew(self, why: Start) -> None:
        """Whoever serves is to be succeeded."""
        self._why = why
        self.renewal = Renewal.UNDERWAY
        self._due = time.monotonic()

    def part(self) -> None:
        """Nobody comes any more, and everybody leaves; who waits is for others."""
        self._due = None
        for each in self:
            each.retire(self._grace)

    def stop(self) -> None:
        """Nobody comes any more, and everybody leaves; who waits is let in first."""
        self._due = None
        for each in self:
            each.stop(self._grace)

    def hear(self, child: Hired) -> None:
        """It has said something."""
        if child is self.coming and child.served:
            self._succeed(child)
        elif child is self.serving and child.state is State.STOPPING:
            # Somebody else told it so. It goes in order, and others let its clients in meanwhile.
            self.serving = None
            self._leaving.append(child)
            if self._due_in(_HEARSAY, "stopped"):
                self._untold = child.pid
            else:
                self._say_ordered(child.pid, "already")

    def ended(self, child: Hired, *, silently: bool) -> None:
        """It is gone. Silently: nobody comes after it, and who has to know why knows it already."""
        if child in self._leaving:
            self._leaving.remove(child)
            return
        if child is self.serving:
            self._terms.board.give_up(self._terms.slots.number(self.slot))
            self.serving = None
        else:
            self.coming = None
            self.renewal = Renewal.FAILED
        if silently:
            return
        if self.serving is not None:
            self._not_before = time.monotonic() + self._backoff.after(None)
            log.logger().error("Worker [%d] %s before it was ready.", child.pid, child.ending)
            return
        wait = self._backoff.after(child.served_for)
        when = f"in {wait:g} s" if wait else "now"
        if not self._due_in(wait, "died"):
            when = "already"
        log.logger().error("Worker [%d] %s. Another is started %s.", child.pid, child.ending, when)

    def _say_ordered(self, pid: int, when: str) -> None:
        sentence = "Worker [%d] ends in order, as somebody has told it to. Another is started %s."
        log.logger().warning(sentence, pid, when)

    def _succeed(self, child: Hired) -> None:
        before, self.serving, self.coming = self.serving, child, None
        self.renewal = Renewal.DONE
        if before is not None:
            before.retire(self._grace)  # who waits is for the new one
            self._leaving.append(before)

    def _due_in(self, seconds: float, why: Start) -> bool:
        """Have one started, unless one is coming or due already."""
        if self.coming is not None or self._due is not None:
            return False
        self._due = time.monotonic() + seconds
        self._why = why
        return True
