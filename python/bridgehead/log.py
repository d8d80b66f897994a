"""What the server says, in the words that uvicorn's users know.

Not who writes it: `loggers.py` hands records on, and Rust writes the access log.

Invariant: each sentence is one record of `bridgehead.error`.
"""

import logging
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bridgehead import log_config, logger_changes, loggers, logging_config
from bridgehead.formatters import NAMELESS, colored
from bridgehead.formatters import TRACE as TRACE
from bridgehead.levels import number_of

if TYPE_CHECKING:
    from bridgehead.config import Config

INFO = logging.INFO
ERROR = logging.ERROR
DEBUG = logging.DEBUG


Names = tuple[str, str | None]  # a request's id, and its `traceparent` if it has one

_BOLD = "1"
_CYAN = "36"


def configure(config: "Config") -> None:
    """Set up our loggers and uvicorn's, as the options ask for it.

    It says nothing to servers that run here already: one with other options leaves their access lines alone.
    """
    with logger_changes.unheard():
        _configure(config)


def _configure(config: "Config") -> None:
    logging.addLevelName(TRACE, "TRACE")
    level = None if config.log_level is None else number_of(config.log_level)
    given = config.log_config
    if given == "":
        given = logging_config.changed() or ""
    if given == "":
        level = level or INFO
        loggers.stand_in(config, level)
    else:
        loggers.step_back()
        if given is not None:
            log_config.apply(given, use_colors=config.use_colors)
        if level is not None:
            # As in uvicorn, the flag outranks the file.
            loggers.set_levels((loggers.UVICORN_ERROR, loggers.UVICORN_ACCESS, "uvicorn.asgi"), level)
    loggers.relay(level)
    loggers.name_requests(always=config.request_id)


def logger() -> logging.Logger:
    """The logger for everything the server says."""
    loggers.revive()
    return logging.getLogger(loggers.ERROR)


def process_started(pid: int) -> None:
    """The first line."""
    _say("Started server process [%d]", pid, color=_CYAN)


def startup_begins() -> None:
    """The application's lifespan startup is about to run."""
    _say("Waiting for application startup.")


def startup_complete() -> None:
    """The application's lifespan startup is done."""
    _say("Application startup complete.")


def serving(labels: Iterable[str], name: str) -> None:
    """Requests are accepted at these addresses, each as `Bound.label` shows it."""
    for label in labels:
        _say(f"{name} running on %s (Press CTRL+C to quit)", label, color=_BOLD)


def certificates_read() -> None:
    """New handshakes are made with what is in the files now."""
    _say("Read the certificates again: new connections are made with them.")


def certificates_refused(problem: Exception) -> None:
    """They are made with what was in the files before."""
    logger().error("The certificates are used as they were read before: %s", problem)


def stopping() -> None:
    """Nothing new is accepted from here on."""
    _say("Shutting down")


def last_call(seconds: float) -> None:
    """The drain delay begins."""
    _say("Clients are let in for %g s more, and each answer closes its connection.", seconds)


def last_answers(seconds: float) -> None:
    """Another process lets clients in; those of this one are told."""
    _say("For %g s at most each answer closes its connection: another process serves from here on.", seconds)


def counted(counts: Mapping[str, int]) -> None:
    """What clients were denied from the first to the last, if anything."""
    if counts:
        words = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        logger().debug("Clients were refused, cut off or kept waiting: %s.", words)


def shutdown_begins() -> None:
    """The application's lifespan shutdown is about to run."""
    _say("Waiting for application shutdown.")


def shutdown_complete() -> None:
    """The application's lifespan shutdown is done."""
    _say("Application shutdown complete.")


def process_finished(pid: int) -> None:
    """The last line."""
    _say("Finished server process [%d]", pid, color=_CYAN)


def reloader_started(pid: int, method: str) -> None:
    """The parent's first line; `method` is how it learns of changes."""
    _say("Started reloader process [%d] using %s", pid, method, color=_CYAN)


def reloader_finished(pid: int) -> None:
    """The parent's last line."""
    _say("Stopping reloader process [%d]", pid, color=_CYAN)


def parent_started(pid: int) -> None:
    """The first line of a parent of workers."""
    _say("Started parent process [%d]", pid, color=_CYAN)


def workers_ready(count: int) -> None:
    """So many workers let clients in."""
    _say("All %d workers are ready.", count)


def workers_wanted(count: int) -> None:
    """So many there are to be from here on."""
    _say("%d workers are wanted.", count)


def parent_finished(pid: int) -> None:
    """Its last line."""
    _say("Stopping parent process [%d]", pid, color=_CYAN)


def outcome(level: int, words: str) -> None:
    """What somebody is waiting for: on stderr where no logger takes it."""
    if loggers.is_heard(level):
        logger().log(level, "%s", words)
    else:
        sys.stderr.write(f"{words}\n")


def trace(sentence: str) -> None:
    """A line that was asked for by name, whatever the level."""
    ours = logger()
    record = ours.makeRecord(ours.name, TRACE, __file__, 0, sentence, (), None)
    record.whatever_level = True
    ours.handle(record)


def message(template: str, *words: object) -> None:
    """A line for those who follow each message."""
    logger().log(TRACE, template, *words)


def connection(client: str, event: str) -> None:
    """A client has come, or is gone."""
    message("%s - HTTP connection %s", client, event)


def application_error(error: BaseException, names: Names | None = None) -> None:
    """One record with the traceback of what the application raised, and the request's name if it has one."""
    _of_request(logging.ERROR, "Exception in ASGI application", (), names, error)


def misbehaviour(sentence: str, names: Names | None = None) -> None:
    """What the application did wrong, without having raised."""
    _of_request(logging.ERROR, "ASGI: %s", (sentence,), names)


def refused(client: str, reason: str, names: Names | None = None) -> None:
    """A request that the application never sees."""
    _of_request(logging.DEBUG, "Refused a request of %s: %s", (client, reason), names)


def held(step: str, cause: str, count: int, names: Names | None = None) -> None:
    """The loop has been held, for so many times by this place."""
    of = None if names is None else attributes(names)
    logger().warning("%s: %s. Time %d there; time %d is told next.", step, cause, count, 10 * count, extra=of)


def shortage(reason: str) -> None:
    """Clients wait, for want of something that only others can give back."""
    logger().warning("New %s", reason)


def collector_away(place: str, why: str) -> None:
    """Said once, until it is back."""
    logger().warning("Spans cannot be sent to %s: %s", place, why)


def collector_back(place: str, lost: int) -> None:
    """After it was away."""
    logger().info("Spans are sent to %s again; %d were lost meanwhile", place, lost)


def spans_unsent(place: str, count: int) -> None:
    """The last of all."""
    logger().warning("%d spans were not sent to %s before the end", count, place)


def lines_lost(count: int) -> None:
    """The loop was too busy for so many access lines."""
    logger().warning("%d access lines were dropped: the loop was too busy to take them", count)


def lines_unread(count: int) -> None:
    """So many access lines were dropped, or are in a write that does not end; of those some may arrive."""
    logger().warning("%d access lines may be lost: their reader is too slow, or has left", count)


def _of_request(
    level: int,
    message: str,
    words: tuple[str, ...],
    names: Names | None,
    error: BaseException | None = None,
) -> None:
    if names is None:
        logger().log(
            level, message, *words, exc_info=error
        )  # with `--request-id` a filter says that it has none
        return
    request_id, traceparent = names
    if traceparent is None:
        message, words = f"{message} (request %s)", (*words, request_id)
    else:
        message, words = f"{message} (request %s, traceparent %s)", (*words, request_id, traceparent)
    logger().log(level, message, *words, exc_info=error, extra=attributes(names))


def attributes(names: Names) -> dict[str, str]:
    """What a record has of its request's names, for formatters and handlers."""
    request_id, traceparent = names
    return {"request_id": request_id, "traceparent": NAMELESS if traceparent is None else traceparent}


def _say(message: str, *words: object, color: str = "") -> None:
    # The same words in the same places: whoever shows it in colours fills it in.
    template = re.sub("%[ds]", lambda place: colored(place[0], color), message)
    logger().info(message, *words, extra={"color_message": template} if color else None)
