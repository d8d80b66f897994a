"""One worker's part among several: its slot, its place on the board, and where the others' sockets are.

Not what is done with it: the network is Rust's (`rota.rs`).

Invariant: the numbers of descriptors are those that the worker's process inherits.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from bridgehead._native import Board, Sheets

OWN_PLACE = 0  # of a process that serves by itself, and may have a successor


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """As the parent writes it down."""

    board: int
    sheets: int
    slot: int
    place: int
    others: tuple[tuple[int, int, bool], ...]  # each with its slot, and whether its clients speak TLS
    bound: tuple[int, ...]  # by the parent, which nobody else has: of its own slot, and of others
    floor: int | None = None  # who fails asks there whether to say why

    @classmethod
    def read(cls, written: dict[str, Any]) -> Self:
        """From JSON, which has lists only."""
        return cls(
            **{
                **written,
                "bound": tuple(written["bound"]),
                "others": tuple((int(n), int(s), bool(t)) for n, s, t in written["others"]),
            }
        )


class Station:
    """As the worker has it; read by Rust."""

    def __init__(self, posting: Posting) -> None:
        self.board = Board(posting.board)
        self.sheet = Sheets(posting.sheets).at(posting.place)
        self.sheet.begin()
        for memory in (posting.board, posting.sheets):
            os.close(memory)  # the memory stays
        self.slot = posting.slot
        self.place = posting.place
        self.others = posting.others
        self.bound = posting.bound
        self._sockets = tuple(socket.socket(fileno=number) for number, _, _ in posting.others)
        for each in self._sockets:
            each.set_inheritable(False)

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """The others', which no child of the application may keep."""
        return self._sockets

    def close(self) -> None:
        """Let go of the others' sockets."""
        for each in self._sockets:
            each.close()
