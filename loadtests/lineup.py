"""The servers of one row of the yardstick: started once for a service, and anew where one has died.

Not how one is started (`servers.py`).

Invariant: a row is asked of servers that run, and says of each other why it has no figure.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException

from bursts import in_a_line
from results import Measured, Row
from servers import Server

# A process that crashes closes its sockets before its end is told, and writes a core in between.
_LAST_BREATH = 2.0


@dataclass(slots=True)
class Lineup:
    """The servers of one service, as they are needed."""

    start: Callable[[str], Server]
    running: dict[str, Server] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def stand(self, names: Iterable[str], row: Row) -> list[Server]:
        """All that run. One that did not start is not tried again, and has its reason in the row."""
        for name in names:
            if name in self.refused or (name in self.running and not self.running[name].death()):
                continue
            try:
                self.running[name] = self.start(name)
            except RuntimeError as problem:
                self.running.pop(name, None)
                self.refused[name] = in_a_line(problem)
        row.servers |= {name: Measured(wrong=why) for name, why in self.refused.items()}
        return list(self.running.values())


def note_death(server: Server, found: Measured) -> None:
    """What was wrong is told as the end of the server, where it is."""
    found.wrong = _told(server, found.wrong)


@contextmanager
def watched(server: Server) -> Iterator[None]:
    """What goes wrong in here is an error that tells it as the end of the server, where it is."""
    wrong = ""
    try:
        yield
    except (RuntimeError, OSError, HTTPException, ValueError) as problem:
        wrong = in_a_line(problem) or repr(problem)
    if wrong := _told(server, wrong):
        raise RuntimeError(wrong)


def _told(server: Server, wrong: str) -> str:
    death = server.death(_LAST_BREATH if wrong else 0.0)
    return f"{death} ({wrong or 'after its answers'})" if death else wrong
