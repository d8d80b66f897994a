"""One worker as its parent sees it: a child process at a place of the board.

Not the process (`offspring.py`), and not whose successor it is (`post.py`).

Invariant: its place is nobody else's until `close`.
"""

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from bridgehead._native import Board
from bridgehead.channel import SILENCE, News, Order, Stage
from bridgehead.config import Config
from bridgehead.floor import Floor
from bridgehead.home import Home
from bridgehead.lifetime import Lifetime
from bridgehead.offspring import HasFileno, Offspring, for_a_child, lent
from bridgehead.station import Posting
from bridgehead.supervisor.figures import Figures
from bridgehead.supervisor.memory import Memory
from bridgehead.supervisor.slots import Slots
from bridgehead.terminal import Terminal

# Why a worker is started, as it is counted: at the start; since one has died, or was told to end by somebody
# else; for a reload; to succeed one that is silent, has served for long enough, or is to be replaced; since
# one more is wanted.
Start = Literal["initial", "died", "stopped", "reload", "unresponsive", "recycled", "replaced", "added"]

MOST = 512  # workers; as many as `--workers` takes


class Hired(Offspring):
    """A worker."""

    def __init__(self, slot: int, terms: "Terms", why: "Start | Mapping[str, Any]") -> None:
        """`why`: it is started; or what another program has written of it, which has."""
        written = None if isinstance(why, str) else why
        self.place = terms.memory.take_place(None if written is None else written["place"])
        self._memory = terms.memory
        self._sheets = terms.figures.sheets
        self._told = False  # to end, by whomever
        self._overdue = False
        self._since: float | None = None
        self._rounds = 0
        self._unseen = 0.0
        self.shown = False  # whether it was asked where it is
        self.spent = False  # whether it was said that its time is over
        self.lifetime = terms.lifetime()
        if isinstance(why, str):
            try:
                super().__init__(*terms.order(slot, self.place), terms.home)
            except OSError:
                self._memory.leave_place(self.place)
                raise
            self._sheets.count_start(why)
        else:
            self._since = why["since"]
            self.take_over(why)

    def written(self) -> dict[str, Any]:
        """As of any child, and its place; the clock is the same for the next program."""
        return super().written() | {"place": self.place, "since": self._since}

    @property
    def served_for(self) -> float | None:
        """Seconds since it was ready; None if it never was."""
        return None if self._since is None else time.monotonic() - self._since

    @property
    def requests(self) -> int:
        """How many it has had."""
        return self._memory.board.look(self.place)[2]

    def silent_for(self, elapsed: float) -> float:
        """Seconds without a sign of life, when so many have passed since the last look.

        Its loop's, as its network has counted; or that network's own, if it is stopped or starved.
        """
        rounds, silence, _ = self._memory.board.look(self.place)
        self._unseen = self._unseen + elapsed if rounds == self._rounds else 0.0
        self._rounds = rounds
        return max(silence, self._unseen)

    def retire(self, within: float = SILENCE) -> None:
        """Tell it to end, once: somebody else serves."""
        self._told = True
        super().retire(within)

    def stop(self, within: float = SILENCE) -> None:
        """Tell it to end, once."""
        self._told = True
        super().stop(within)

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._overdue = self._told
        super().kill()

    def end_by_force(self) -> None:
        """End it, since its time is over."""
        self._overdue = self._told
        super().end_by_force()

    def close(self) -> None:
        """Let go of what is left of it, its place included."""
        super().close()
        self._sheets.count_end(self._reason)
        self._sheets.give_up(self.place)
        self._memory.leave_place(self.place)

    @property
    def _reason(self) -> str:
        """Why it has ended, as it is counted."""
        if self._overdue or self.ended_overdue:
            return "overdue"
        if self._told:
            return "stopped"
        if self.refused_to_start:
            return "refused_to_start"
        return "killed" if self.ending.startswith("was killed") else "exited"

    def _take_in(self, news: News) -> None:
        super()._take_in(news)
        self._told |= news.stage is Stage.STOPPING
        if news.stage is Stage.READY:
            self._since = time.monotonic()


class Terms:
    """What is the same for every worker."""

    def __init__(
        self, config: Config, home: Home, slots: Slots, left: tuple[int | None, int] | None = None
    ) -> None:
        """`left`: the memory, if there is any, and the figures that another in this process has left."""
        memory, figures = left or (None, None)
        self.memory = Memory(memory)
        self.figures = Figures(figures)
        self.floor = Floor()
        self.config = config
        self.home = home
        self.terminal = Terminal()
        self.slots = slots
        self._order = Order(config=for_a_child(config), path=[*sys.path])

    def lifetime(self) -> Lifetime:
        """How long one of them may serve."""
        return Lifetime(self.config)

    def close(self) -> None:
        """Let go of what all of them share."""
        self.memory.close()
        self.figures.close()
        self.floor.close()

    @property
    def board(self) -> Board:
        """What all of them share."""
        return self.memory.board

    def order(self, slot: int, place: int) -> "tuple[Order, Iterable[HasFileno]]":
        """What one of them is told, and what it inherits for that."""
        own, others = self.slots.of(slot), [*self.slots.others(slot)]
        posting = Posting(
            board=self.memory.fileno(),
            sheets=self.figures.fileno(),
            slot=self.slots.number(slot),
            place=place,
            others=tuple((each.fileno(), number, each.secure) for number, each in others),
            bound=tuple(
                each.fileno() for each in (*own, *(each for _, each in others)) if not each.inherited
            ),
            floor=self.floor.fileno(),
        )
        order = replace(self._order, config=lent(self._order.config, own), posting=posting)
        return order, [*own, *(each for _, each in others), self.memory, self.figures, self.floor]
