"""The port for operators (`--admin`): where it listens, and what is told there.

Not the answers: a thread in Rust gives those, without Python (`crates/bridgehead-admin`).

Invariant: it listens before the first client is let in, and until the last one is gone.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bridgehead import forks, log, sockets
from bridgehead._native import Admin, Sheet, Sheets
from bridgehead.address import Address, TcpAddress, UnixAddress, parse_address
from bridgehead.config import Config
from bridgehead.errors import StartError
from bridgehead.sockets import Bound, Kind, bind

_BACKLOG = 128
_MODE = 0o660  # paths of requests are not for every user of the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the thread needs to know; read by Rust."""

    descriptor: int
    unix: bool
    figures: Sheet | Sheets
    silence: float
    python: str
    target: str


class Desk:
    """Answers operators, from the moment it is made."""

    def __init__(self, config: Config, figures: Sheet | Sheets, left: Sequence[Bound] | None = None) -> None:
        """`left`: the sockets of who has answered there before."""
        try:
            self._bound = _bound(config) if left is None else [*left]
        except StartError as problem:
            raise problem.within("admin") from None
        forks.register(each.socket for each in self._bound)
        self._config = config
        self._threads: list[Admin] = []
        self.show(figures)
        for each in self._bound:
            if left is None:
                log.logger().info("Operators are answered on %s", each.label)

    def show(self, figures: Sheet | Sheets) -> None:
        """Tell of these from here on; who asks meanwhile waits."""
        for thread in self._threads:
            thread.close()
        self._threads = [Admin(_wanted(self._config, each, figures)) for each in self._bound]

    def leave(self) -> list[Bound]:
        """Answer nobody any more. Who asks waits for whom these sockets are given to."""
        for thread in self._threads:
            thread.close()
        left, self._threads, self._bound = self._bound, [], []
        forks.forget(each.socket for each in left)
        return left

    def close(self) -> None:
        """Let nobody in any more."""
        for thread in self._threads:
            thread.close()
        for each in self._bound:
            each.close()
        forks.forget(each.socket for each in self._bound)
        self._threads, self._bound = [], []


def refuse_taken(config: Config) -> None:
    """Say at once what keeps its address from being listened on."""
    if config.admin:
        try:
            sockets.refuse_taken([_address(config.admin)])
        except StartError as problem:
            raise problem.within("admin") from None


def _bound(config: Config) -> list[Bound]:
    return bind([_address(config.admin)], backlog=_BACKLOG) if config.admin else []


def _address(written: str) -> Address:
    match parse_address(written):
        case TcpAddress() as address:
            return replace(address, option="--admin")
        case UnixAddress() as address:
            return replace(address, mode=_MODE)
        case address:
            return address


def _wanted(config: Config, bound: Bound, figures: Sheet | Sheets) -> Wanted:
    return Wanted(
        descriptor=bound.fileno(),
        unix=bound.kind is Kind.UNIX,
        figures=figures,
        # Of several workers the parent replaces one that is blocked.
        silence=config.timeout_worker_healthcheck if isinstance(figures, Sheet) else 0.0,
        python=sys.version.split()[0],
        target=config.app if isinstance(config.app, str) else "",
    )
