"""The loggers that records go through: ours, and uvicorn's behind them, for whoever configures those.

What the server says is a record of `bridgehead.error`, what clients asked one of `bridgehead.access`. A relay
hands each on to `uvicorn.error` and `uvicorn.access`. There our own handlers write, as long as nobody put
others in their place. Not the sentences (`log.py`), and not the lines that Rust writes.

Invariant: a record is written once by us, whatever the application does to `logging`.
"""

import logging
import sys
from collections.abc import Iterable
from copy import copy
from enum import Enum
from typing import TYPE_CHECKING, Any, TextIO

from bridgehead import logger_changes
from bridgehead.formatters import (
    NAMELESS,
    NAMES,
    DefaultFormatter,
    JsonFormatter,
    LineFormatter,
    look_of,
)
from bridgehead.unheld import Unheld

if TYPE_CHECKING:
    from bridgehead.config import Config

OURS = "bridgehead"
ERROR = "bridgehead.error"
ACCESS = "bridgehead.access"
UVICORN = "uvicorn"
UVICORN_ERROR = "uvicorn.error"
UVICORN_ACCESS = "uvicorn.access"

# Nobody knows it, so only `dictConfig`, which disables each logger that it does not name, would disable it,
# in the order of their names: this one is the last.
_CANARY = "~bridgehead.canary"
logging.getLogger(_CANARY)  # before anybody's configuration, so that each tells by it
_EVERY = (OURS, ERROR, ACCESS, UVICORN, UVICORN_ERROR, UVICORN_ACCESS, "uvicorn.asgi")

_EVERYTHING = 1

_SERVER_FORMAT = "%(levelprefix)s %(message)s"
_ACCESS_FORMAT = '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s'


class Route(Enum):
    """Who writes access lines."""

    NOBODY = "they are off, or no logger would take them"
    RUST = "a thread that needs no Python"
    LOGGERS = "whoever configured the loggers"


class Relay(logging.Handler):
    """Hands the records of one of our loggers to one of uvicorn's."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target

    def handle(self, record: logging.LogRecord) -> bool:
        """Hand it on, under the other name; the handlers there have their own locks."""
        theirs = logging.getLogger(self.target)
        heard = record.levelno >= theirs.getEffectiveLevel() or hasattr(record, "whatever_level")
        if theirs.disabled or not heard:
            return False
        passed = copy(record)
        passed.name, passed.said_by = self.target, record.name
        kept = theirs.filter(passed)
        if not kept:
            return False
        theirs.callHandlers(kept if isinstance(kept, logging.LogRecord) else passed)
        return True


class Named(logging.Filter):
    """Gives each record the names of a request, for formatters that show them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """A record without them is of no request, or of one that could not be read."""
        for name in NAMES:
            record.__dict__.setdefault(name, NAMELESS)
        return True


class StandIn(logging.StreamHandler[TextIO]):
    """What writes as long as nobody configured anything else; remembers how it was made, tells of changes."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        logger_changes.tell()

    def addFilter(self, filter: Any) -> None:  # noqa: A002, N802
        """As it says."""
        super().addFilter(filter)
        logger_changes.tell()

    def removeFilter(self, filter: Any) -> None:  # noqa: A002, N802
        """As it says."""
        super().removeFilter(filter)
        logger_changes.tell()

    def __init__(self, stream: TextIO | None, formatter: logging.Formatter) -> None:
        super().__init__(stream)
        self.setFormatter(formatter)
        self._unheld = _unheld(self.stream)
        self._made_with = (formatter, look_of(formatter), self.stream)
        self._made_of = {*vars(self), "_made_of"}

    def emit(self, record: logging.LogRecord) -> None:
        """Without waiting for a reader that is not there, on the stream that it was made with."""
        if self._unheld is None or self.stream is not self._made_with[2]:
            super().emit(record)
            return
        try:
            self._unheld.write(self.format(record) + self.terminator, self._tell_lost)
        except RecursionError:
            raise
        except Exception:  # as every handler has it: nobody who logs is to fail for that
            self.handleError(record)

    def _tell_lost(self, count: int) -> str:
        said = f"{count} of the server's lines were lost here, since nobody read them."
        told = {"name": ERROR, "levelno": logging.WARNING, "levelname": "WARNING", "msg": said}
        return self.format(logging.makeLogRecord(told)) + self.terminator

    def is_as_made(self) -> bool:
        """Whether nobody gave it another formatter, stream, method, filter or level."""
        formatter, look, stream = self._made_with
        return (
            self.formatter is formatter
            and look_of(formatter) == look
            and self.stream is stream
            and vars(self).keys() == self._made_of
            and not self.filters
            and self.level == logging.NOTSET
        )


def _unheld(stream: TextIO) -> Unheld | None:
    """None for what is no stream of the system's: a program's own waits for nobody."""
    try:
        return Unheld(stream)
    except (AttributeError, OSError, ValueError):
        return None


def name_requests(*, always: bool) -> None:
    """Have what is said name its request, `-` if it is of none; or only what is of one."""
    for name in (ERROR, UVICORN_ERROR):
        logger = logging.getLogger(name)
        others = [each for each in logger.filters if not isinstance(each, Named)]
        logger.filters = [*others, Named()] if always else others


def relay(level: int | None) -> None:
    """Have our loggers hand on what is theirs, unless somebody gave them handlers by a name of ours."""
    revive()
    for name, target in ((OURS, UVICORN_ERROR), (ACCESS, UVICORN_ACCESS)):
        ours = logging.getLogger(name)
        others = [each for each in ours.handlers if not isinstance(each, Relay)]
        if others and not _has(ours, Relay):
            continue
        ours.handlers = [*others, Relay(target)]
        ours.propagate = False  # else `basicConfig` in the application prints each line a second time
    if level is not None:
        logging.getLogger(OURS).setLevel(level)
    elif not logging.getLogger(OURS).level:
        logging.getLogger(OURS).setLevel(_level_of(UVICORN_ERROR))
    if not logging.getLogger(ACCESS).level:
        # Whoever takes them judges.
        logging.getLogger(ACCESS).setLevel(_EVERYTHING)


def _level_of(name: str) -> int:
    """What a logger or its parent was given; nothing if only the root was, which may come later."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None and logger.name != logging.root.name:
        if logger.level:
            return logger.level
        logger = logger.parent
    return logging.NOTSET


def stand_in(config: "Config", level: int) -> None:
    """Set uvicorn's loggers up as uvicorn does: handlers where people look for them, and change them.

    What was there before goes, as it does there: who means to keep it hands over `log_config=None`.
    """
    server, access = _handlers(config)
    _install(UVICORN, [server], level)
    _install(UVICORN_ERROR, [], level)
    _install(UVICORN_ACCESS, [access] if config.access_log else [], level)
    logging.getLogger(UVICORN_ERROR).propagate = True
    logging.getLogger("uvicorn.asgi").setLevel(level)


def step_back() -> None:
    """Take out what an earlier configuration of ours put in: this one is the operator's."""
    if _has(logging.getLogger(OURS), Relay):
        set_levels((OURS, ACCESS), logging.NOTSET)
    theirs = [logging.getLogger(name) for name in (UVICORN, UVICORN_ERROR, UVICORN_ACCESS)]
    if any(_has(each, StandIn) for each in theirs):
        for logger in theirs:
            logger.handlers = [each for each in logger.handlers if not isinstance(each, StandIn)]
            logger.propagate = True
            logger.setLevel(logging.NOTSET)


def _install(name: str, handlers: list[StandIn], level: int) -> None:
    theirs = logging.getLogger(name)
    theirs.handlers = [*handlers]
    theirs.propagate = False
    theirs.setLevel(level)


def _handlers(config: "Config") -> tuple[StandIn, StandIn]:
    if config.log_format == "json":
        return StandIn(sys.stderr, JsonFormatter()), StandIn(sys.stdout, JsonFormatter())
    colors = config.use_colors
    return (
        StandIn(sys.stderr, DefaultFormatter(_SERVER_FORMAT, use_colors=colors)),
        StandIn(sys.stdout, LineFormatter(_ACCESS_FORMAT, use_colors=colors)),
    )


def revive() -> None:
    """`dictConfig` disables each logger that it does not name; nobody means the server's by that."""
    canary = logging.getLogger(_CANARY)
    if canary.disabled:
        for name in (_CANARY, *_EVERY):
            logging.getLogger(name).disabled = False


def is_heard(level: int) -> bool:
    """Whether somebody would take what the server says at this level."""
    revive()
    ours = logging.getLogger(ERROR)
    if not ours.isEnabledFor(level):
        return False
    relayed = logging.getLogger(UVICORN_ERROR)
    takers = [each for each in _handlers_of(ours) if not isinstance(each, Relay)]
    if relayed.isEnabledFor(level) and any(isinstance(each, Relay) for each in _handlers_of(ours)):
        # Where nobody configured anything, Python itself writes.
        takers += _handlers_of(relayed) or [each for each in (logging.lastResort,) if each]
    return any(each.level <= level and not isinstance(each, logging.NullHandler) for each in takers)


def _handlers_of(logger: logging.Logger) -> list[logging.Handler]:
    """Its own, and those that its records rise to."""
    found: list[logging.Handler] = []
    current: logging.Logger | None = logger
    while current is not None:
        found += current.handlers
        current = current.parent if current.propagate else None
    return found


def heeded() -> list[logging.Logger]:
    """Those that say who takes access lines: both access loggers, and who is above as far as that counts."""
    found = [logging.getLogger(_CANARY)]
    for name in (ACCESS, UVICORN_ACCESS):
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            found.append(logger)
            logger = logger.parent if logger.propagate or not logger.level else None
    return found


def access_route(config: "Config") -> Route:
    """Who is to write access lines, as the loggers are now."""
    if not config.access_log:
        return Route.NOBODY
    revive()
    ours, theirs = logging.getLogger(ACCESS), logging.getLogger(UVICORN_ACCESS)
    if not ours.isEnabledFor(logging.INFO):
        return Route.NOBODY
    relayed = _has(ours, Relay)
    if relayed and _is_untouched(ours) and _is_untouched(theirs):
        return Route.RUST if theirs.isEnabledFor(logging.INFO) else Route.NOBODY
    others = [each for each in ours.handlers if not isinstance(each, Relay)]
    heard = relayed and theirs.isEnabledFor(logging.INFO) and theirs.hasHandlers()
    heard_by_ours = bool(others) or (ours.propagate and ours.hasHandlers())
    return Route.LOGGERS if heard or heard_by_ours else Route.NOBODY


def writes_lines_of_ours() -> bool:
    """Whether somebody who takes access records writes the lines that they bring along."""
    ours, theirs = logging.getLogger(ACCESS), logging.getLogger(UVICORN_ACCESS)
    takers = _handlers_of(ours) + (_handlers_of(theirs) if _has(ours, Relay) else [])
    return any(_brings_lines(each.formatter) for each in takers)


def _brings_lines(formatter: logging.Formatter | None) -> bool:
    if isinstance(formatter, LineFormatter):
        return formatter.is_as_made()
    return isinstance(formatter, JsonFormatter)


def _is_untouched(logger: logging.Logger) -> bool:
    """Whether a logger has what we gave it, and nothing else."""
    made = [each for each in logger.handlers if isinstance(each, Relay) or _is_as_made(each)]
    return not logger.propagate and not logger.filters and len(made) == len(logger.handlers) == 1


def _is_as_made(handler: logging.Handler) -> bool:
    return isinstance(handler, StandIn) and handler.is_as_made()


def _has(logger: logging.Logger, kind: type[logging.Handler]) -> bool:
    return any(isinstance(each, kind) for each in logger.handlers)


def set_levels(names: Iterable[str], level: int) -> None:
    """Set the level of each."""
    for name in names:
        logging.getLogger(name).setLevel(level)
