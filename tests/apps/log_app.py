"""An application that sets its logging up as people do; `LOGGING` names the way.

The way is applied while the application is imported; `LOGGING_AT_STARTUP` names one for its startup, and a
request for `/apply/way` applies that one while clients are served.

Not a configuration for the server: everything here is what an application does by itself.
Invariant: what a sink of this file got begins with `sink` and the logger's name.
"""

from __future__ import annotations

import logging
import logging.config
import os
import sys

from kit import Receive, Scope, Send, answer, answer_json

NAMES = ("uvicorn", "uvicorn.error", "uvicorn.access")


class Sink(logging.Handler):
    """Loguru's InterceptHandler in small: all that is known of a record, elsewhere."""

    def emit(self, record: logging.LogRecord) -> None:
        error = repr(record.exc_info[1]) if record.exc_info else ""
        words = [record.name, record.levelname, record.getMessage(), error, getattr(record, "request_id", "")]
        stream = sys.stdout if record.name.endswith(".access") else sys.stderr
        stream.write("sink " + " | ".join(words).rstrip(" |") + "\n")
        stream.flush()


class FiveArguments(logging.Formatter):
    """What formatters for `uvicorn.access` do with a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        assert isinstance(record.args, tuple)
        client, method, target, version, status = record.args
        assert isinstance(status, int)
        asked = f"method={method} path={target} http={version}"
        return f"sink {record.name} client={client} {asked} status={status}"


class NoHealth(logging.Filter):
    """The filter of a thousand blog posts."""

    def filter(self, record: logging.LogRecord) -> bool:
        return bool(record.args) and "/health" not in str(record.args[2])  # type: ignore[index]


def uvicorns_own() -> None:
    """A copy of uvicorn's LOGGING_CONFIG with formatters of its own."""
    stream = "logging.StreamHandler"
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "default": {"format": "sink %(name)s %(levelname)s %(message)s"},
                "access": {"()": FiveArguments},
            },
            "handlers": {
                "default": {"formatter": "default", "class": stream, "stream": "ext://sys.stderr"},
                "access": {"formatter": "access", "class": stream, "stream": "ext://sys.stdout"},
            },
            "loggers": {
                "uvicorn": {"handlers": ["default"], "level": "INFO", "propagate": False},
                "uvicorn.error": {"level": "INFO"},
                "uvicorn.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
            },
        }
    )


def intercepted() -> None:
    """Loguru's recipe: the root has the handler, everybody else propagates."""
    logging.basicConfig(handlers=[Sink()], level=logging.INFO, force=True)
    for name in NAMES:
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


def intercepted_each() -> None:
    """The other recipe: each logger has the handler."""
    for name in ("uvicorn", "uvicorn.access"):
        logging.getLogger(name).handlers = [Sink()]
        logging.getLogger(name).propagate = False


def beside() -> None:
    """One more handler."""
    logging.getLogger("uvicorn").addHandler(Sink())
    logging.getLogger("uvicorn.access").addHandler(Sink())


def ours() -> None:
    """Handlers by our names."""
    logging.getLogger("bridgehead.access").addHandler(Sink())
    logging.getLogger("bridgehead").addHandler(Sink())


def named() -> None:
    """Formatters that show the names of requests."""
    for name in ("uvicorn", "uvicorn.access"):
        shown = logging.Formatter("sink %(name)s %(message)s id=%(request_id)s trace=%(traceparent)s")
        logging.getLogger(name).handlers[0].setFormatter(shown)
    logging.getLogger("uvicorn.error").info("the application's own")


def filtered() -> None:
    logging.getLogger("uvicorn.access").addFilter(NoHealth())


def reformatted() -> None:
    logging.getLogger("uvicorn.access").handlers[0].setFormatter(logging.Formatter("sink %(message)s"))


def quiet() -> None:
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)


def disabled() -> None:
    logging.getLogger("uvicorn.access").disabled = True


def swept() -> None:
    """Whoever writes this does not mean us."""
    logging.config.dictConfig({"version": 1})


def basic() -> None:
    logging.basicConfig(level=logging.DEBUG, handlers=[Sink()], force=True)


def rising() -> None:
    """Access records rise to a logger without handlers; the server's own do not."""
    above, error, access = (logging.getLogger(name) for name in NAMES)
    error.handlers, above.handlers, access.handlers = above.handlers, [], []
    error.propagate, access.propagate = False, True


def above() -> None:
    logging.getLogger("uvicorn").addHandler(Sink())


def away() -> None:
    """Sinks taken away again."""
    for name in NAMES:
        logger = logging.getLogger(name)
        for handler in [each for each in logger.handlers if isinstance(each, Sink)]:
            logger.removeHandler(handler)


def louder() -> None:
    logging.getLogger("uvicorn.access").setLevel(logging.INFO)


if way := os.environ.get("LOGGING"):
    globals()[way]()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan" and (way := os.environ.get("LOGGING_AT_STARTUP")):
        await receive()
        globals()[way]()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    if scope["path"].startswith("/apply/"):
        globals()[scope["path"].removeprefix("/apply/")]()
    match scope["path"]:
        case "/fail":
            raise RuntimeError("theirs")
        case "/lacking":
            return
        case "/state":
            state = {name: scope["state"].get(name) for name in ("request_id", "traceparent")}
            await answer_json(send, state)
        case "/own":
            await answer(send, headers=[(b"x-request-id", b"the-applications")])
        case "/log":
            logging.getLogger("uvicorn.error").warning("said by the application")
            await answer(send)
        case _:
            await answer(send, b"hello", headers=[(b"x-served-by", b"log_app"), (b"x-quote", b'a"b\\c')])
