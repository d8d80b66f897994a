"""Where the values of options come from, and who outranks whom: of several layers, the highest.

Not who reads which layer (`settings.py`): each hands over what was written there, unread.

Invariant: an address given by a higher source is never mixed with one of another kind from a lower source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bridgehead import forwarded, trace
from bridgehead.aliases import NEAR_NAMES
from bridgehead.config import OPTIONS, Config
from bridgehead.errors import StartError, did_you_mean, nearest
from bridgehead.options import Option

OUR_PREFIX = "BRIDGEHEAD_"
UVICORN_PREFIX = "UVICORN_"
CONFIG_VARIABLE = OUR_PREFIX + "CONFIG"

# What uvicorn takes from the environment besides our options. (A name that neither knows is a mistake.)
_UVICORN_ONLY = frozenset(
    [
        "VERSION",
    ]
)
_TLS = "SSL_"  # how each name begins that asks for TLS
_TLS_HINT = "see docs/tls.md"

# Options that say where to listen, each with those it makes meaningless: giving it outranks them below.
_REPLACES = {
    "bind": frozenset({"host", "port", "uds", "fd"}),
    "uds": frozenset({"bind", "host", "port", "fd"}),
    "fd": frozenset({"bind", "host", "port", "uds"}),
    "host": frozenset({"bind", "uds", "fd"}),
    "port": frozenset({"bind", "uds", "fd"}),
}
# Given side by side, these contradict each other. `--uds` with `--host` does not: uvicorn takes the former,
# and so do we, with a warning (`doubts.py`).
_CONTRADICTIONS = (("bind", "host"), ("bind", "port"), ("bind", "uds"), ("bind", "fd"), ("uds", "fd"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value as it was written, and the name of the place it was written in."""

    value: object
    source: str
    folder: str = ""  # what its paths are relative to; the current directory if empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A configuration, and where each value that is no default was given."""

    config: Config
    origins: Mapping[str, Given]


def resolve(layers: Iterable[Mapping[str, Given]]) -> Resolved:
    """Make one configuration from sources, the highest first."""
    given: dict[str, Given] = {}
    for layer in layers:
        _refuse_contradictions(layer)
        replaced = frozenset[str]().union(*(_REPLACES.get(name, frozenset()) for name in given))
        given = {name: each for name, each in layer.items() if name not in replaced} | given
    app = given.get("app")
    if app is not None and app.folder and "app_dir" not in given:
        given["app_dir"] = Given(value=app.folder, source=app.source)
    values = {option.name: _value(option, given[option.name]) for option in OPTIONS if option.name in given}
    return Resolved(config=Config(**values), origins=given)


def environment(environ: Mapping[str, str], prefix: str) -> dict[str, Given]:
    """The options that the environment sets under one prefix. An empty variable is not set, as in click."""
    return _set({option.name: option.environment_name(prefix) for option in OPTIONS}, environ)


def environment_of_others(environ: Mapping[str, str]) -> dict[str, Given]:
    """The options that the environment sets under names that are neither ours nor uvicorn's, as `PORT`."""
    return _set({option.name: option.also for option in OPTIONS if option.also}, environ)


def strays(environ: Mapping[str, str]) -> list[str]:
    """A sentence for each `BRIDGEHEAD_*` and `UVICORN_*` variable that sets nothing."""
    known = [option.environment_name("") for option in OPTIONS]
    return [
        _stray(prefix, name, known)
        for prefix in (OUR_PREFIX, UVICORN_PREFIX)
        for name in _names(environ, prefix)
        if name not in known and prefix + name not in (CONFIG_VARIABLE, trace.VARIABLE)
    ] + trace.mistakes(environ)


def is_uvicorns(name: str) -> bool:
    """Whether it is a setting that only uvicorn has."""
    return name.replace("-", "_").upper() in _UVICORN_ONLY


def refuse_uvicorns(words: Iterable[str]) -> None:
    """An option of uvicorn's on the command line is no slip of the pen."""
    for word in words:
        flag = word.partition("=")[0]
        name = flag.removeprefix("--").removeprefix("no-")
        if flag.startswith("--") and name.replace("-", "_").upper().startswith(_TLS):
            raise StartError(
                f"there is no option {flag!r}", did_you_mean(flag, _tls_flags(), otherwise=_TLS_HINT)
            )
        if flag.startswith("--") and is_uvicorns(name):
            raise StartError(f"{flag} is an option of uvicorn's that is not there yet", "leave it out")


def _tls_flags() -> list[str]:
    flags = (*(option.flag for option in OPTIONS), *NEAR_NAMES)
    return [flag for flag in flags if flag.startswith("--ssl-")]


def refuse_plaintext(environ: Mapping[str, str]) -> None:
    """For a variable that asks for TLS a warning would not do: all might be sent in the clear."""
    known = [option.environment_name("") for option in OPTIONS]
    for prefix in (OUR_PREFIX, UVICORN_PREFIX):
        for name in _names(environ, prefix):
            if name.startswith(_TLS) and name not in known:
                near = nearest(name, known)
                hint = f"did you mean `{prefix}{near[0]}`?" if near else "unset it"
                raise StartError(f"{prefix}{name} asks for something of TLS that there is not", hint)


def _set(variables: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, Given]:
    return {
        option: Given(value=environ[variable], source=variable)
        for option, variable in variables.items()
        # An empty list of who is trusted says that nobody is, in uvicorn too.
        if environ.get(variable) or (variable == forwarded.VARIABLE and variable in environ)
    }


def _value(option: Option, given: Given) -> Any:
    try:
        value = option.read(given.value)
    except StartError as problem:
        told = problem.within(given.source)
        told.hint = told.hint or f"this is for: {option.help}"
        raise told from None
    return option.anchor(value, given.folder) if option.anchor and given.folder else value


def _names(environ: Mapping[str, str], prefix: str) -> list[str]:
    """What is set under a prefix, without it."""
    return sorted(name.removeprefix(prefix) for name in environ if name.startswith(prefix) and environ[name])


def _stray(prefix: str, name: str, known: list[str]) -> str:
    if prefix == UVICORN_PREFIX and name in _UVICORN_ONLY:
        return f"{prefix}{name} is a setting of uvicorn's that is not there yet; it is ignored"
    near = nearest(name, known)
    meant = f"did you mean {prefix}{near[0]}?" if near else "it is ignored"
    return f"{prefix}{name} is not a setting; {meant}"


def _refuse_contradictions(layer: Mapping[str, Given]) -> None:
    for one, other in _CONTRADICTIONS:
        if one in layer and other in layer:
            sources = f"{layer[one].source} and {layer[other].source}"
            hint = "keep one of them; --bind may be given several times, also as unix:/path and fd://number"
            raise StartError(f"{sources} say different things about where to listen", hint)
