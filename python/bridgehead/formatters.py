"""How a record becomes a line: uvicorn's look, or an object of JSON.

The first three stand for those of `uvicorn.logging`, which people name in their log configurations: the same
arguments, the same fields. Not where lines go.

Invariant: a record is not changed by being formatted, as others format it too.
"""

import logging
import sys
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any, Literal

TRACE = 5
# A request's names, as attributes of a record, and what a record has that has none.
NAMES = ("request_id", "traceparent")
NAMELESS = "-"

_COLORS = {
    TRACE: "34",
    logging.DEBUG: "36",
    logging.INFO: "32",
    logging.WARNING: "33",
    logging.ERROR: "31",
    logging.CRITICAL: "91",
}
_STATUS_COLORS = {1: "97", 2: "32", 3: "33", 4: "31", 5: "91"}
_BOLD = "1"


def _painted(color: str, content: str) -> str:
    return colored(content, color)


class ColourizedFormatter(logging.Formatter):
    """Adds `levelprefix`; coloured, the message is the record's `color_message` if it has one."""

    level_name_colors: Mapping[int, Callable[[str], str]] = {
        level: partial(_painted, color) for level, color in _COLORS.items()
    }

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: Literal["%", "{", "$"] = "%",
        use_colors: bool | None = None,
        **others: Any,
    ) -> None:
        super().__init__(fmt, datefmt, style, **others)
        self.use_colors = use_colors if isinstance(use_colors, bool) else self.should_use_colors()

    def should_use_colors(self) -> bool:
        """Asked when nobody said."""
        return True

    def color_level_name(self, level_name: str, level_no: int) -> str:
        """A level's name, in its colour if it has one."""
        paint = self.level_name_colors.get(level_no)
        return colored(level_name, "0") if paint is None else paint(level_name)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Put the level in front, padded so that messages line up."""
        shown = copy(record)
        padding = " " * (8 - len(shown.levelname))
        if self.use_colors:
            shown.levelname = self.color_level_name(shown.levelname, shown.levelno)
            template = getattr(shown, "color_message", None)
            if template is not None:
                shown.msg = template
                shown.message = shown.getMessage()
        shown.levelprefix = f"{shown.levelname}:{padding}"
        return super().formatMessage(shown)


class DefaultFormatter(ColourizedFormatter):
    """For what the server says: coloured when stderr is a terminal."""

    def should_use_colors(self) -> bool:
        """Asked when nobody said."""
        return is_terminal(sys.stderr)


class AccessFormatter(ColourizedFormatter):
    """For access records: adds `client_addr`, `request_line` and `status_code`."""

    def should_use_colors(self) -> bool:
        """Asked when nobody said."""
        return is_terminal(sys.stdout)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Take the five arguments apart."""
        shown = copy(record)
        if isinstance(shown.args, tuple) and len(shown.args) == 5:
            client, method, target, version, status = shown.args
            request = f"{method} {target} HTTP/{version}"
            shown.client_addr = client
            shown.request_line = colored(request, _BOLD) if self.use_colors else request
            shown.status_code = self.get_status_code(int(str(status)))
        return super().formatMessage(shown)

    def get_status_code(self, status_code: int) -> str:
        """With its phrase, in its colour."""
        from http import HTTPStatus

        try:
            shown = f"{status_code} {HTTPStatus(status_code).phrase}"
        except ValueError:
            shown = f"{status_code} "
        return colored(shown, _STATUS_COLORS.get(status_code // 100, "97")) if self.use_colors else shown


class LineFormatter(AccessFormatter):
    """For access records of ours, which bring their line along."""

    def __init__(self, *fmt: Any, **others: Any) -> None:
        super().__init__(*fmt, **others)
        self._made = look_of(self)

    def is_as_made(self) -> bool:
        """Whether nobody changed it in its place."""
        return look_of(self) == self._made

    def format(self, record: logging.LogRecord) -> str:
        """Take the line that Rust made; a record of somebody else has none."""
        line = getattr(record, "access_line", None)
        return line if isinstance(line, str) and self.is_as_made() else super().format(record)


class JsonFormatter(logging.Formatter):
    """One object of JSON a line: `time`, `level`, `logger`, `message`, `exception` if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Make the object."""
        line = getattr(record, "access_line", None)
        if isinstance(line, str):
            return line  # it is one already
        from datetime import UTC, datetime
        from json import dumps

        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        shown: dict[str, object] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": getattr(record, "said_by", record.name),
            "message": record.getMessage(),
        }
        for name in NAMES:
            if (value := getattr(record, name, NAMELESS)) != NAMELESS:
                shown[name] = value
        if record.exc_info:
            shown["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            shown["stack"] = self.formatStack(record.stack_info)
        return dumps(shown, default=str, separators=(",", ":"))


def look_of(formatter: logging.Formatter) -> dict[str, object]:
    """What makes its lines look as they do."""
    shown = {name: value for name, value in vars(formatter).items() if name not in ("_made", "_style")}
    return {**shown, "style": dict(vars(formatter._style))}


def colored(content: object, color: str) -> str:
    """For terminals."""
    return f"\x1b[{color}m{content}\x1b[0m"


def is_terminal(stream: Any) -> bool:
    """Whether a person reads it; a stream may be missing or closed."""
    return stream is not None and not stream.closed and bool(stream.isatty())
