"""Where the values of options come from, and who outranks whom: flags, `BRIDGEHEAD_*`, `UVICORN_*`, defaults.

Not the command line's grammar: `cli.py` hands over what was written there as one more source.

Invariant: an address given by a higher source is never mixed with one of another kind from a lower source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bridgehead.config import OPTIONS, Config
from bridgehead.errors import StartError, nearest

OUR_PREFIX = "BRIDGEHEAD_"
UVICORN_PREFIX = "UVICORN_"

# What uvicorn takes from the environment besides our options. (A name that neither knows is a mistake.)
_UVICORN_ONLY = frozenset(
    [
        "ENV_FILE",
        "FORWARDED_ALLOW_IPS",
        "H11_MAX_INCOMPLETE_EVENT_SIZE",
        "HTTP",
        "HTTP2",
        "INTERFACE",
        "LIMIT_CONCURRENCY",
        "LIMIT_MAX_REQUESTS",
        "LIMIT_MAX_REQUESTS_JITTER",
        "LOG_CONFIG",
        "PROXY_HEADERS",
        "RELOAD",
        "RELOAD_DELAY",
        "RELOAD_DIRS",
        "RELOAD_EXCLUDES",
        "RELOAD_INCLUDES",
        "RESET_CONTEXTVARS",
        "TIMEOUT_WORKER_HEALTHCHECK",
        "VERSION",
        "WORKERS",
        "WS",
        "WS_MAX_QUEUE",
        "WS_MAX_SIZE",
        "WS_PER_MESSAGE_DEFLATE",
        "WS_PING_INTERVAL",
        "WS_PING_TIMEOUT",
    ]
)
_TLS = "SSL_"  # how each name begins that asks for TLS

# Options that say where to listen, each with those it makes meaningless: giving it outranks them below.
_REPLACES = {
    "bind": frozenset({"host", "port", "uds", "fd"}),
    "uds": frozenset({"bind", "fd"}),
    "fd": frozenset({"bind", "uds"}),
    "host": frozenset({"bind", "uds", "fd"}),
    "port": frozenset({"bind", "uds", "fd"}),
}
# Given side by side, these contradict each other. `--uds` with `--host` does not: uvicorn takes the former.
_CONTRADICTIONS = (("bind", "host"), ("bind", "port"), ("bind", "uds"), ("bind", "fd"), ("uds", "fd"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value as it was written, and the name of the place it was written in."""

    value: object
    source: str


def resolve(layers: Iterable[Mapping[str, Given]]) -> Config:
    """Make one configuration from sources, the highest first."""
    given: dict[str, Given] = {}
    for layer in layers:
        _refuse_contradictions(layer)
        replaced = frozenset[str]().union(*(_REPLACES.get(name, frozenset()) for name in given))
        given = {name: each for name, each in layer.items() if name not in replaced} | given
    values: dict[str, Any] = {}
    for option in OPTIONS:
        if option.name in given:
            each = given[option.name]
            try:
                values[option.name] = option.read(each.value)
            except StartError as problem:
                raise problem.within(each.source) from None
    return Config(**values)


def environment(environ: Mapping[str, str], prefix: str) -> dict[str, Given]:
    """The options that the environment sets under one prefix. An empty variable is not set, as in click."""
    names = {option.name: option.environment_name(prefix) for option in OPTIONS}
    return {
        option: Given(value=environ[variable], source=variable)
        for option, variable in names.items()
        if environ.get(variable)
    }


def strays(environ: Mapping[str, str]) -> list[str]:
    """A sentence for each `BRIDGEHEAD_*` and `UVICORN_*` variable that sets nothing."""
    known = [option.environment_name("") for option in OPTIONS]
    return [
        _stray(prefix, name, known)
        for prefix in (OUR_PREFIX, UVICORN_PREFIX)
        for name in _names(environ, prefix)
        if name not in known
    ]


def refuse_plaintext(environ: Mapping[str, str]) -> None:
    """For a variable that asks for TLS a warning would not do: all would be sent in the clear."""
    for prefix in (OUR_PREFIX, UVICORN_PREFIX):
        for name in _names(environ, prefix):
            if name.startswith(_TLS):
                hint = "unset it, and let a proxy in front do the TLS"
                raise StartError(f"{prefix}{name} asks for TLS, which is not there yet", hint)


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
