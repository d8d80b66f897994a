"""`--compat uvicorn`: the limits and defaults that uvicorn has, where ours are others.

Not the bounds that are no options, which stay as docs/limits.md has them.

Invariant: what was given anywhere outranks what is here, and this outranks our own defaults.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import ParamSpec

from bridgehead.options import choice, maybe
from bridgehead.quantities import LONGEST_SECONDS

P = ParamSpec("P")

# A request's head in uvicorn; ours is a target and header lines.
_HEAD = 64 * 1024
_LONGEST_TARGET = 65_534  # what hyper takes
_MOST_HEADERS = 10_000  # what may be asked for

UVICORN: Mapping[str, object] = MappingProxyType(
    {
        "http2": False,
        "limit_max_requests_jitter": 0,
        "reload_delay": 0.25,
        "timeout_worker_healthcheck": 5.0,
        "ws_accept_timeout": 0.0,
        "timeout_first_byte": 0.0,
        "timeout_header": 0.0,
        "timeout_body": 0.0,
        "timeout_write": 0.0,
        "timeout_keep_alive": 5.0,
        "connection_lifetime": 0.0,
        "timeout_graceful_shutdown": LONGEST_SECONDS,
        "drain_delay": 0.0,
        "timeout_lifespan_startup": LONGEST_SECONDS,
        "timeout_lifespan_shutdown": LONGEST_SECONDS,
        "limit_connections": 0,
        "limit_concurrency": 0,
        "limit_queue": 0,  # who sets the other is to have others refused at once
        "limit_target": _LONGEST_TARGET,
        "limit_headers": _MOST_HEADERS,
        "limit_header_bytes": _HEAD,
        "limit_body": 0,
        "min_rate": 0,
    }
)

read = maybe(choice("uvicorn"))


def defaults(compat: str | None) -> Mapping[str, object]:
    """What stands for our own defaults."""
    return {} if compat is None else UVICORN


def heeding(init: Callable[P, None]) -> Callable[P, None]:
    """The constructor of a configuration, with `compat` heeded."""

    @wraps(init)
    def heeded(*positional: P.args, **given: P.kwargs) -> None:
        known = defaults(read(given.get("compat")))
        chosen = {name: value for name, value in known.items() if given.get(name) is None}
        largest_head = given.get("h11_max_incomplete_event_size")
        if largest_head is not None and given.get("limit_header_bytes") is None:
            chosen["limit_header_bytes"] = largest_head
        init(*positional, **{**given, **chosen})  # type: ignore[arg-type]

    return heeded
