"""The server's own lines on stderr, in the look that uvicorn's users know.

Not the access log: Rust writes that to stdout. Not the application's logging: we touch no logger but ours.

Invariant: whatever the application does to `logging`, a line of ours appears once.
"""

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

TRACE = 5
INFO = logging.INFO

_ROOT = "bridgehead"
_LEVELS = {
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}
_COLORS = {
    TRACE: "34",
    logging.DEBUG: "36",
    logging.INFO: "32",
    logging.WARNING: "33",
    logging.ERROR: "31",
    logging.CRITICAL: "91",
}
_BOLD = "1"
_CYAN = "36"


class Formatter(logging.Formatter):
    """`INFO:     message`; coloured, the message is the record's `color_message` if it has one."""

    def __init__(self, *, use_colors: bool) -> None:
        super().__init__("%(levelprefix)s %(message)s")
        self.use_colors = use_colors

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Put the level in front, padded so that messages line up."""
        name, message = record.levelname, record.message
        padding = " " * (8 - len(name))
        if self.use_colors:
            name = _colored(name, _COLORS.get(record.levelno, "0"))
            message = getattr(record, "color_message", message)
        return f"{name}:{padding} {message}"


class _Handler(logging.StreamHandler[TextIO]):
    """Our one handler; a type of its own so that configuring twice replaces it."""


def configure(*, level: str, use_colors: bool | None) -> None:
    """Set up the loggers `bridgehead` and `bridgehead.error`; None asks the terminal about colours."""
    logging.addLevelName(TRACE, "TRACE")
    handler = _Handler(sys.stderr)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    handler.setFormatter(Formatter(use_colors=terminal if use_colors is None else use_colors))
    root = logging.getLogger(_ROOT)
    root.handlers = [*(each for each in root.handlers if not isinstance(each, _Handler)), handler]
    root.setLevel(_LEVELS[level])
    root.propagate = False  # else `basicConfig` in the application prints each line a second time


def logger() -> logging.Logger:
    """The logger for everything the server says."""
    ours = logging.getLogger(f"{_ROOT}.error")
    # `dictConfig` disables each logger that it does not name; nobody means the server's by that.
    ours.disabled = False
    return ours


def process_started(pid: int) -> None:
    """The first line."""
    _say(f"Started server process [{pid}]", f"Started server process [{_colored(pid, _CYAN)}]")


def startup_begins() -> None:
    """The application's lifespan startup is about to run."""
    _say("Waiting for application startup.")


def startup_complete() -> None:
    """The application's lifespan startup is done."""
    _say("Application startup complete.")


def serving(labels: Iterable[str]) -> None:
    """Requests are accepted at these addresses, each as `Bound.label` shows it."""
    for label in labels:
        line = "Bridgehead running on {} (Press CTRL+C to quit)"
        _say(line.format(label), line.format(_colored(label, _BOLD)))


def stopping() -> None:
    """Nothing new is accepted from here on."""
    _say("Shutting down")


def shutdown_begins() -> None:
    """The application's lifespan shutdown is about to run."""
    _say("Waiting for application shutdown.")


def shutdown_complete() -> None:
    """The application's lifespan shutdown is done."""
    _say("Application shutdown complete.")


def process_finished(pid: int) -> None:
    """The last line."""
    _say(f"Finished server process [{pid}]", f"Finished server process [{_colored(pid, _CYAN)}]")


def reloader_started(pid: int, method: str) -> None:
    """The parent's first line; `method` is how it learns of changes."""
    line = "Started reloader process [{}] using {}"
    _say(line.format(pid, method), line.format(_colored(pid, _CYAN), _colored(method, _CYAN)))


def reloader_finished(pid: int) -> None:
    """The parent's last line."""
    _say(f"Stopping reloader process [{pid}]", f"Stopping reloader process [{_colored(pid, _CYAN)}]")


def application_error(error: BaseException) -> None:
    """One record with the traceback of what the application raised."""
    logger().error("Exception in ASGI application", exc_info=error)


def trace(sentence: str) -> None:
    """A line that was asked for by name, whatever the level."""
    ours = logger()
    ours.handle(ours.makeRecord(ours.name, TRACE, __file__, 0, sentence, (), None))


def _say(message: str, color_message: str | None = None) -> None:
    logger().info("%s", message, extra={"color_message": color_message or message})


def _colored(content: object, color: str) -> str:
    return f"\x1b[{color}m{content}\x1b[0m"
