"""What operators read of requests: what Rust is to write by itself, and what it hands to Python's loggers.

Not the server's own sentences (`log.py`) and not the handlers (`loggers.py`).

Invariant: as long as nobody configured the loggers for it, no access line costs Python anything.
"""

import logging
import sys
from dataclasses import dataclass, field

from bridgehead import access_format, log, loggers
from bridgehead.config import Config
from bridgehead.formatters import is_terminal
from bridgehead.loggers import Route

_STDOUT = 1
_HALF = 64  # bits of a seed; there are two of them
_MESSAGE = '%s - "%s %s HTTP/%s" %d'  # uvicorn's, whose five arguments filters and formatters take apart


class Reports:
    """Says what the network reports, on the loop's thread; called by Rust."""

    def access(self, asked: tuple[str, str, str, str, int], line: str, names: log.Names | None) -> None:
        """One record of `bridgehead.access`."""
        logger = logging.getLogger(loggers.ACCESS)
        if not logger.isEnabledFor(logging.INFO):
            return
        record = logger.makeRecord(logger.name, logging.INFO, "", 0, _MESSAGE, asked, None)
        record.access_line = line
        if names is not None:
            record.__dict__.update(log.attributes(names))
        logger.handle(record)

    def refused(self, client: str, reason: str, names: log.Names | None) -> None:
        """Why a request did not reach the application."""
        log.refused(client, reason, names)

    def shortage(self, reason: str) -> None:
        """Why clients wait to be let in."""
        log.shortage(reason)

    def connection(self, client: str, event: str) -> None:
        """A client has come, or is gone."""
        log.connection(client, event)

    def lost(self, count: int) -> None:
        """So many found no room."""
        log.lines_lost(count)

    def unread(self, count: int) -> None:
        """Nobody took so many from where they were written to."""
        log.lines_unread(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """What is to be written and told; read by Rust."""

    descriptor: int | None
    through_python: bool
    style: str
    pieces: tuple[access_format.Piece, ...]
    colours: bool
    refusals: bool
    connections: bool
    request_ids: tuple[int, int] | None
    reports: Reports = field(default_factory=Reports)


def wanted(config: Config) -> Logs:
    """As the options and the loggers have it now, which is when the application has started."""
    route = loggers.access_route(config)
    style, pieces = _layout(config)
    terminal = is_terminal(sys.stdout)
    return Logs(
        descriptor=_STDOUT if route is Route.RUST else None,
        through_python=route is Route.LOGGERS,
        style=style,
        pieces=pieces,
        colours=terminal if config.use_colors is None else config.use_colors,
        refusals=log.logger().isEnabledFor(log.DEBUG),
        connections=log.logger().isEnabledFor(log.TRACE),
        request_ids=_seeds() if config.request_id else None,
    )


def _seeds() -> tuple[int, int]:
    import secrets

    return secrets.randbits(_HALF), secrets.randbits(_HALF)


def _layout(config: Config) -> tuple[str, tuple[access_format.Piece, ...]]:
    if config.access_log_format is not None:
        style = "json" if config.log_format == "json" else "text"
        return style, access_format.parse(config.access_log_format)
    if config.log_format == "json":
        names = access_format.USUAL + (access_format.NAMES if config.request_id else ())
        return "json", tuple(("field", name) for name in names)
    return "usual", ()
