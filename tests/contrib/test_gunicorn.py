"""`bridgehead.contrib.gunicorn`: what gunicorn's options and a subclass's come to.

Needs gunicorn, which `make frameworks` installs; there `tests/matrix/test_uvicorns_users.py` starts it.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest

gunicorn = pytest.importorskip("gunicorn")

from gunicorn.config import Config as Settings  # noqa: E402
from gunicorn.glogging import Logger  # noqa: E402

from bridgehead.compat.uvicorn.workers import UvicornH11Worker, UvicornWorker  # noqa: E402
from bridgehead.contrib.gunicorn import BridgeheadWorker, _settings, _tell_of_unheeded  # noqa: E402


def told(**options: Any) -> Settings:
    """gunicorn's own, with some options given."""
    settings = Settings()
    for name, value in options.items():
        settings.set(name, value)
    return settings


def made(kind: type[BridgeheadWorker], **options: Any) -> BridgeheadWorker:
    """A worker as gunicorn makes it, in the process that has yet to fork."""
    settings = told(**options)
    worker = kind(1, os.getpid(), [], None, 30, settings, Logger(settings))
    worker.tmp.close()
    return worker


@pytest.fixture(autouse=True)
def loggers_as_before() -> Any:
    """A worker gives them gunicorn's handlers."""
    names = ("uvicorn.error", "uvicorn.access", "bridgehead", "bridgehead.access")
    kept = [(each, dict(vars(each))) for each in map(logging.getLogger, names)]
    yield
    for logger, state in kept:
        vars(logger).update(state)


def test_what_a_subclass_says_outranks_gunicorn() -> None:
    class Airflows(UvicornWorker):
        CONFIG_KWARGS = {**UvicornWorker.CONFIG_KWARGS, "log_config": None, "access_log": False}  # noqa: RUF012 - as Airflow has it

    class Litellms(UvicornWorker):
        def __init__(self, *positional: Any) -> None:
            self.CONFIG_KWARGS = {**UvicornWorker.CONFIG_KWARGS, "timeout_graceful_shutdown": 7}
            super().__init__(*positional)

    assert made(Airflows).config.access_log is False
    worker = made(Litellms, graceful_timeout=20, keepalive=3)
    assert (worker.config.timeout_graceful_shutdown, worker.config.timeout_keep_alive) == (7.0, 3.0)


def test_subclasses_find_what_uvicorns_worker_has() -> None:
    assert UvicornWorker.CONFIG_KWARGS == {"loop": "auto", "http": "auto"}
    assert UvicornH11Worker.CONFIG_KWARGS == {"loop": "asyncio", "http": "h11"}
    for name in ("_serve", "_install_sigquit_handler", "callback_notify"):
        assert callable(getattr(UvicornWorker, name))


def test_the_limits_of_gunicorn_hold() -> None:
    found = _settings(told(max_requests=3, max_requests_jitter=2, limit_request_line=100))
    assert (found["limit_max_requests"], found["limit_max_requests_jitter"]) == (3, 2)
    assert found["limit_target"] == 100
    assert "limit_max_requests" not in _settings(told())


def test_no_bound_of_gunicorns_is_the_largest_that_there_is() -> None:
    config = made(BridgeheadWorker, limit_request_line=0, limit_request_fields=0, max_requests=0).config
    assert (config.limit_target, config.limit_headers) == (65_534, 10_000)
    assert made(BridgeheadWorker, limit_request_fields=32_768).config.limit_headers == 10_000


def test_an_option_without_a_counterpart_is_told_of() -> None:
    said: list[str] = []

    class Log:
        warning = staticmethod(said.append)

    _tell_of_unheeded(told(), Log)
    assert said == []
    _tell_of_unheeded(told(limit_request_field_size=200), Log)
    assert said[0].startswith("limit_request_field_size changes nothing here")


def test_the_first_worker_says_as_much_as_those_after_it() -> None:
    for name in ("uvicorn.error", "bridgehead"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    made(BridgeheadWorker, loglevel="info")
    assert logging.getLogger("bridgehead.error").isEnabledFor(logging.INFO)
