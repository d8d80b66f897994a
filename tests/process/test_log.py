"""The server's lines: their look, and their life beside an application's own logging."""

import io
import logging
import logging.config
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridgehead import log
from bridgehead.config import Config
from bridgehead.loggers import Route, access_route

NAMES = (
    "bridgehead",
    "bridgehead.error",
    "bridgehead.access",
    "uvicorn",
    "uvicorn.error",
    "uvicorn.access",
    "",
)


@pytest.fixture(autouse=True)
def _own_loggers() -> Iterator[None]:
    yield
    for name in NAMES:
        known = logging.getLogger(name)
        known.handlers = [each for each in known.handlers if type(each).__module__.startswith("_pytest")]
        known.filters = []
        known.propagate, known.disabled = True, False
        known.setLevel(logging.NOTSET if name else logging.WARNING)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_the_lines_are_those_that_people_know(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(Config(log_level="info", use_colors=None))
    log.process_started(12)
    log.startup_begins()
    log.startup_complete()
    log.serving(["http://127.0.0.1:8000", "unix socket /x"], "Bridgehead")
    log.stopping()
    log.shutdown_begins()
    log.shutdown_complete()
    log.process_finished(12)
    assert lines(capsys) == [
        "INFO:     Started server process [12]",
        "INFO:     Waiting for application startup.",
        "INFO:     Application startup complete.",
        "INFO:     Bridgehead running on http://127.0.0.1:8000 (Press CTRL+C to quit)",
        "INFO:     Bridgehead running on unix socket /x (Press CTRL+C to quit)",
        "INFO:     Shutting down",
        "INFO:     Waiting for application shutdown.",
        "INFO:     Application shutdown complete.",
        "INFO:     Finished server process [12]",
    ]


def test_colours_are_uvicorns(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(Config(log_level="info", use_colors=True))
    log.process_started(12)
    log.serving(["http://x"], "Uvicorn")
    assert lines(capsys) == [
        "\x1b[32mINFO\x1b[0m:     Started server process [\x1b[36m12\x1b[0m]",
        "\x1b[32mINFO\x1b[0m:     Uvicorn running on \x1b[1mhttp://x\x1b[0m (Press CTRL+C to quit)",
    ]


def test_a_level_silences_what_is_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(Config(log_level="warning", use_colors=False))
    log.stopping()
    log.logger().warning("kept")
    assert lines(capsys) == ["WARNING:  kept"]


def test_trace_is_a_level_with_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(Config(log_level="trace", use_colors=False))
    log.logger().log(log.TRACE, "fine")
    assert lines(capsys) == ["TRACE:    fine"]


def test_configuring_twice_prints_once(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(Config(log_level="info", use_colors=False))
    log.configure(Config(log_level="info", use_colors=False))
    log.stopping()
    assert lines(capsys) == ["INFO:     Shutting down"]


def test_basic_config_in_the_application_doubles_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(Config(log_level="info", use_colors=False))
    logging.basicConfig(level=logging.DEBUG, force=True)
    log.stopping()
    assert lines(capsys) == ["INFO:     Shutting down"]


def test_dict_config_in_the_application_silences_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(Config(log_level="info", use_colors=False))
    log.logger()
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": True})
    log.stopping()
    assert lines(capsys) == ["INFO:     Shutting down"]


def test_an_application_may_still_choose_our_level(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(Config(log_level="info", use_colors=False))
    logging.config.dictConfig({"version": 1, "loggers": {"bridgehead.error": {"level": "ERROR"}}})
    log.stopping()
    assert lines(capsys) == []


def test_an_exception_of_the_application_is_one_record_with_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.configure(Config(log_level="info", use_colors=False))
    seen: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    log.logger().addHandler(Keep())
    try:
        raise RuntimeError("theirs")
    except RuntimeError as error:
        log.application_error(error)
    (record,) = seen
    assert (record.name, record.getMessage()) == ("bridgehead.error", "Exception in ASGI application")
    assert record.exc_info is not None
    shown = lines(capsys)
    assert shown[:2] == ["ERROR:    Exception in ASGI application", "Traceback (most recent call last):"]
    assert shown[-1] == "RuntimeError: theirs"


@pytest.mark.parametrize(
    "change",
    [
        lambda handler: handler.setStream(io.StringIO()),
        lambda handler: setattr(handler, "emit", print),
        lambda handler: setattr(handler.formatter, "use_colors", True),
        lambda handler: setattr(handler.formatter._style, "_fmt", "%(message)s"),
    ],
    ids=["stream", "emit", "colours", "format"],
)
def test_a_change_of_our_access_handler_in_its_place_is_noticed(change: Callable[[Any], object]) -> None:
    config = Config(log_level="info", use_colors=False)
    log.configure(config)
    assert access_route(config) is Route.RUST
    change(logging.getLogger("uvicorn.access").handlers[0])
    assert access_route(config) is Route.LOGGERS
