"""The signature of `run`, which is that of a configuration. Nothing is called here."""

from collections.abc import Callable
from typing import ParamSpec

from bridgehead.server_config import Config
from bridgehead.uvicorn_parameters import OF_RUN

P = ParamSpec("P")


def with_the_options(_: Callable[P, Config]) -> Callable[[Callable[..., None]], Callable[P, None]]:
    """A function that takes what `Config` takes, for type checkers and for readers of its signature."""

    def typed(function: Callable[..., None]) -> Callable[P, None]:
        function.__signature__ = OF_RUN.replace(return_annotation=None)  # type: ignore[attr-defined]
        return function

    return typed
