"""What operators read of requests: what Rust is to write by itself, and what it hands to Python's loggers.

Not the server's own sentences (`log.py`) and not the handlers (`loggers.py`).

Invariant: as long as nobody configured the loggers for it, no access line costs Python anything.
"""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from bridgehead import access_format, log, loggers
from bridgehead.access_lines import TAKERS
from bridgehead.config import Config
from bridgehead.formatters import NAMELESS, NAMES, is_terminal
from bridgehead.loggers import Route

_STDOUT = 1
_HALF = 64  # bits of a seed; there are two of them
_MESSAGE = '%s - "%s %s HTTP/%s" %d'  # uvicorn's, whose five arguments filters and formatters take apart

_IN_VAIN = "the handlers that uvicorn.access was given have formatters of their own"


class Reports:
    """Says what the network reports, on the loop's thread; called by Rust.

    `nameless`: the attributes of a record whose request has no names.
    """

    def __init__(self, nameless: Mapping[str, str]) -> None:
        self._nameless = nameless

    def access(self, asked: tuple[str, str, str, str, int], line: str, names: log.Names | None) -> None:
        """One record of `bridgehead.access`."""
        logger = logging.getLogger(loggers.ACCESS)
        if not logger.isEnabledFor(logging.INFO):
            return
        record = logger.makeRecord(logger.name, logging.INFO, "", 0, _MESSAGE, asked, None)
        record.access_line = line
        record.__dict__.update(self._nameless if names is None else log.attributes(names))
        logger.handle(record)

    def refused(self, client: str, reason: str, names: log.Names | None) -> None:
        """Why a request did not reach the application."""
        log.refused(client, reason, names)

    def shortage(self, reason: str) -> None:
        """Why clients wait to be let in."""
        log.shortage(reason)

    def collector_away(self, place: str, why: str) -> None:
        """Spans cannot be sent."""
        log.collector_away(place, why)

    def collector_back(self, place: str, lost: int) -> None:
        """They can again."""
        log.collector_back(place, lost)

    def spans_unsent(self, place: str, count: int) -> None:
        """The server ends before they were sent."""
        log.spans_unsent(place, count)

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
    taker: str
    style: str
    pieces: tuple[access_format.Piece, ...]
    colours: bool
    refusals: bool
    connections: bool
    request_ids: tuple[int, int] | None
    reports: Reports


def wanted(config: Config) -> Logs:
    """As the options and the loggers have it now, which is when the application has started.

    Who takes access lines may change later (`access_lines.py`).
    """
    route = loggers.access_route(config)
    if route is Route.LOGGERS and not loggers.writes_lines_of_ours():
        _say_what_is_in_vain(config)
    style, pieces = _layout(config)
    terminal = is_terminal(sys.stdout)
    return Logs(
        descriptor=_STDOUT if config.access_log else None,
        taker=TAKERS[route],
        style=style,
        pieces=pieces,
        colours=terminal if config.use_colors is None else config.use_colors,
        refusals=log.logger().isEnabledFor(log.DEBUG),
        connections=log.logger().isEnabledFor(log.TRACE),
        request_ids=_seeds() if config.request_id else None,
        reports=Reports(dict.fromkeys(NAMES, NAMELESS) if config.request_id else {}),
    )


def _say_what_is_in_vain(config: Config) -> None:
    """Nobody knew before the application had started who takes access lines."""
    if config.access_log_format is not None:
        log.logger().warning("--access-log-format does nothing: %s.", _IN_VAIN)
    elif config.log_format == "json" and config.log_config == "":  # else it was told of with all other doubts
        log.logger().warning("--log-format json does nothing for access lines: %s.", _IN_VAIN)


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
