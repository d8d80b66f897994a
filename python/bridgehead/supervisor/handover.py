"""What a program hands to the next one that runs in the same process: sockets, workers, and who they are.

Not when that is (`succession.py`), nor what comes then (`resumed.py`).

Invariant: every descriptor that is named is inherited, and none besides.
"""

import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, Self

from bridgehead.channel import Order
from bridgehead.home import Home
from bridgehead.identity import Identity
from bridgehead.offspring import interpreter
from bridgehead.socket_file import SocketFile
from bridgehead.sockets import Bound, Kind
from bridgehead.supervisor.crew import SIGNALS, Crew
from bridgehead.supervisor.hired import Terms
from bridgehead.supervisor.slots import Slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """As JSON has it."""

    order: dict[str, Any]
    environ: dict[str, str]
    identity: dict[str, Any] | None  # by numbers: whatever names mean by then, nobody gets other rights
    memory: int
    figures: int
    slots: list[list[dict[str, Any]]]
    operators: list[dict[str, Any]] | None  # the sockets at which they ask
    crew: dict[str, Any]
    anew: bool  # whether the workers are of an older program

    @classmethod
    def of(cls, terms: Terms, crew: Crew, operators: Iterable[Bound], *, anew: bool) -> Self:
        """All of it, once the crew was left."""
        return cls(
            order=Order(config=terms.config, path=[*sys.path]).written(),
            environ=dict(terms.home.environ),
            identity=None if terms.home.identity is None else asdict(terms.home.identity),
            memory=terms.memory.fileno(),
            figures=terms.figures.fileno(),
            slots=[[_written(each) for each in slot] for slot in terms.slots],
            operators=[_written(each) for each in operators],
            crew=crew.written(),
            anew=anew,
        )

    @classmethod
    def read(cls, descriptor: int) -> Self:
        """What `execute` left."""
        with os.fdopen(descriptor, "rb") as file:
            file.seek(0)
            # A program of before has closed those of its operators.
            return cls(**{"operators": None, **json.load(file)})

    def execute(self) -> NoReturn:
        """Run the next program in this process, whose signals wait until it catches them."""
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(asdict(self)).encode())
            file.flush()
            number = os.dup(file.fileno())
        for each in (number, *self._descriptors()):
            os.set_inheritable(each, True)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        os.execve(sys.executable, interpreter("bridgehead.supervisor.resumed", str(number)), self.environ)

    def terms(self) -> Terms:
        """What the workers have been started with, and others will be."""
        order = Order.read(self.order)
        sys.path[:] = order.path
        # Slots may share one, which is to be one object here as well: each of two would close the other's.
        all_of_them = {each["number"]: each for slot in self.slots for each in slot}
        bound = {number: _read(each) for number, each in all_of_them.items()}
        slots = Slots([[bound[each["number"]] for each in slot] for slot in self.slots])
        home = Home(environ=self.environ, identity=self._identity())
        return Terms(order.config, home, slots, (self.memory, self.figures))

    def left_by_operators(self) -> list[Bound] | None:
        """Where they ask; None: that is to be bound anew."""
        return None if self.operators is None else [_read(each) for each in self.operators]

    def _identity(self) -> Identity | None:
        if self.identity is None:
            return None
        return Identity(**self.identity | {"groups": tuple(self.identity["groups"])})

    def _descriptors(self) -> Iterable[int]:
        yield from (self.memory, self.figures)
        yield from {each["number"] for slot in self.slots for each in slot}
        yield from (each["number"] for each in self.operators or ())
        for post in self.crew["posts"]:
            for child in (post["serving"], post["coming"], *post["leaving"]):
                if child is not None:
                    yield from (child[each] for each in ("channel", "lent") if child[each] >= 0)


def _written(bound: Bound) -> dict[str, Any]:
    return {
        "number": bound.fileno(),
        "kind": bound.kind,
        "label": bound.label,
        "file": None if bound.file is None else asdict(bound.file),
        "inherited": bound.inherited,
        "secure": bound.secure,
    }


def _read(written: Mapping[str, Any]) -> Bound:
    sock = socket.socket(fileno=written["number"])
    sock.set_inheritable(False)
    return Bound(
        socket=sock,
        kind=Kind(written["kind"]),
        label=written["label"],
        file=None if written["file"] is None else SocketFile(**written["file"]),
        inherited=written["inherited"],
        secure=written["secure"],
    )
