"""`uvicorn.main`: `run`, and the command `uvicorn` with Bridgehead's words.

Not the options (`bridgehead.config`) and not the server (`server.py`).

Invariant: however it is started, the server is the `Server` of this package, so what programs have changed
on that class holds.
"""

import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridgehead.command_line import read_command_line
from bridgehead.compat.uvicorn._types import ASGIApplication as ASGIApplication
from bridgehead.compat.uvicorn.config import INTERFACES as INTERFACES
from bridgehead.compat.uvicorn.config import LIFESPAN as LIFESPAN
from bridgehead.compat.uvicorn.config import LOG_LEVELS as LOG_LEVELS
from bridgehead.compat.uvicorn.config import LOGGING_CONFIG as LOGGING_CONFIG
from bridgehead.compat.uvicorn.config import SSL_PROTOCOL_VERSION as SSL_PROTOCOL_VERSION
from bridgehead.compat.uvicorn.config import STARTUP_FAILURE as STARTUP_FAILURE
from bridgehead.compat.uvicorn.config import Config
from bridgehead.compat.uvicorn.config import HTTPProtocolType as HTTPProtocolType
from bridgehead.compat.uvicorn.config import InterfaceType as InterfaceType
from bridgehead.compat.uvicorn.config import LifespanType as LifespanType
from bridgehead.compat.uvicorn.config import LoopFactoryType as LoopFactoryType
from bridgehead.compat.uvicorn.config import WSProtocolType as WSProtocolType
from bridgehead.compat.uvicorn.config import logger as logger
from bridgehead.compat.uvicorn.server import Server
from bridgehead.compat.uvicorn.supervisors import ChangeReload as ChangeReload
from bridgehead.compat.uvicorn.supervisors import Multiprocess as Multiprocess
from bridgehead.errors import EXIT_START_FAILED, StartError
from bridgehead.settings import read_settings
from bridgehead.uvicorn_arguments import of_run
from bridgehead.uvicorn_parameters import OF_RUN

if importlib.util.find_spec("click") is not None:  # uvicorn's own names, for commands with its options
    import click as click

    from bridgehead.compat.click_choices import INTERFACE_CHOICES as INTERFACE_CHOICES
    from bridgehead.compat.click_choices import LEVEL_CHOICES as LEVEL_CHOICES
    from bridgehead.compat.click_choices import LIFESPAN_CHOICES as LIFESPAN_CHOICES
    from bridgehead.compat.click_choices import print_version as print_version


def run(*app: Any, **options: Any) -> None:
    """Serve until told to stop, as `uvicorn.run` does. A failing start exits with code 3."""
    given = of_run(app, options)
    try:
        config = Config(**given)
    except StartError as problem:
        _refuse(problem)
    serve(config)


run.__signature__ = OF_RUN.replace(return_annotation=None)  # type: ignore[attr-defined]


def serve(config: Config) -> None:
    """Serve what is configured, in this process or in others."""
    server = Server(config)
    with suppress(KeyboardInterrupt):
        server.begin()
    alone = config.workers == 1 and not config.should_reload
    if alone and not (server.started or server.should_exit):
        # A start that fails says so itself; this one was never tried, by a `run` that a program has replaced.
        raise SystemExit(STARTUP_FAILURE)


def _read(words: Sequence[str]) -> Config:
    """What these words and the environment ask for."""
    line = read_command_line(words)
    settings = read_settings(line.given, os.environ, Path.cwd(), line.config).with_application(Path.cwd())
    return Config.of(settings.config)


class _Command:
    """The command where click is not installed. A `callback` that replaces `run` gets the options."""

    def __init__(self) -> None:
        self.callback: Any = run

    def __call__(self, args: Sequence[str] | None = None) -> None:
        try:
            config = _read(sys.argv[1:] if args is None else args)
        except StartError as problem:
            _refuse(problem)
        if self.callback is run:
            serve(config)
        else:
            self.callback(**{name: getattr(config, name) for name in OF_RUN.parameters})

    main = __call__


def _command() -> Any:
    try:
        from bridgehead.compat.click_command import Command
    except ImportError:
        return _Command()
    return Command(_read, serve, run)


def _refuse(problem: StartError) -> Any:
    sys.stderr.write(problem.render())
    raise SystemExit(EXIT_START_FAILED) from problem


main = _command()
