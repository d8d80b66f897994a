"""What programs hand to uvicorn's `Config`, as our own reader takes it.

Not the options (`config.py`), nor their order (`uvicorn_parameters.py`).

Invariant: what nothing here could be made of is refused by its name, and never passed over.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from inspect import Signature
from typing import Any, NamedTuple

from bridgehead.errors import StartError, did_you_mean
from bridgehead.uvicorn_parameters import KEPT, OF_CONFIG, OF_RUN


class Arguments(NamedTuple):
    """What was given: our options, and what a server does beside serving."""

    options: dict[str, Any]
    callback_notify: Callable[..., Awaitable[None]] | None
    timeout_notify: float


def arguments(positional: tuple[Any, ...], named: Mapping[str, Any]) -> Arguments:
    """Give each argument its name. `TypeError` for one that nobody knows."""
    try:
        given = OF_CONFIG.bind(*positional, **named).arguments
    except TypeError as problem:
        raise TypeError(f"Config(): {problem}{_meant(problem, named, OF_CONFIG)}") from None
    kept = {name: given.pop(name) for name in KEPT & given.keys()}
    refuse_context_factory(kept.get("ssl_context_factory"))
    return Arguments(
        options={name: _ours(name, value) for name, value in given.items()},
        callback_notify=kept.get("callback_notify"),
        timeout_notify=kept.get("timeout_notify", 30),
    )


def refuse_context_factory(chosen: object) -> None:
    """Whatever it would make could not be used."""
    if chosen is not None:
        raise StartError(
            "ssl_context_factory makes a context of Python's, and TLS is spoken by rustls here",
            "name the files by ssl_certfile, ssl_keyfile and ssl_ca_certs",
        )


def of_run(positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """What `run` was given, by name. `TypeError` for an argument that nobody knows."""
    try:
        return OF_RUN.bind(*positional, **named).arguments
    except TypeError as problem:
        raise TypeError(f"run(): {problem}{_meant(problem, named, OF_RUN)}") from None


def _meant(problem: TypeError, named: Mapping[str, Any], known: Signature) -> str:
    """What a name that nobody knows may have been meant for, if that is the mistake."""
    told = (name for name in named if name not in known.parameters and str(problem).endswith(repr(name)))
    hint = did_you_mean(next(told, ""), known.parameters)
    return f"; {hint}" if hint else ""


def _ours(name: str, value: Any) -> Any:
    if name in ("reload_dirs", "reload_includes", "reload_excludes"):
        # One of them, whatever blanks it has.
        return [value] if isinstance(value, str | os.PathLike) else value
    return value
