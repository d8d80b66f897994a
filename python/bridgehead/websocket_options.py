"""How WebSockets are spoken, and what one may cost: options, as a part of `Config`.

Rust enforces all of them, which reads them off a `Config`; 0 is none where there may be none.
"""

# ruff: noqa: RUF009 (`option` returns a dataclass field, which is what belongs there)

from dataclasses import dataclass
from typing import cast

from bridgehead.errors import StartError
from bridgehead.health_options import HealthOptions
from bridgehead.options import choice, limit, maybe, option, switch
from bridgehead.quantities import Bytes, at_most, seconds

_NEW = "new: uvicorn has no such option"
_GROUP = "WebSockets"
_LARGEST = 2**40


_LIBRARIES = choice("auto", "none", "websockets", "websockets-sansio", "wsproto")


def _library(value: object) -> str:
    """The name of a library of uvicorn's; a class of somebody's own cannot be heeded."""
    if isinstance(value, type) or (isinstance(value, str) and ":" in value):
        raise StartError(
            f"{value!r} is a protocol of Python's, and WebSockets are spoken in Rust here", "leave it out"
        )
    return _LIBRARIES(value)


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class WebSocketOptions(HealthOptions):
    """What a WebSocket may cost, and how it is kept alive."""

    ws: str = option(
        "auto",
        # uvicorn's names of libraries; there is one implementation here, and it is in Rust.
        read=_library,
        metavar="auto|none",
        group=_GROUP,
        help="none: a request for a WebSocket is like any other; uvicorn's other words mean auto",
    )
    ws_max_size: Bytes = option(
        Bytes(16 * 1024**2),
        read=at_most(_LARGEST),
        metavar="SIZE",
        group=_GROUP,
        help="the largest message of a client; a larger one closes its WebSocket with 1009",
    )
    ws_max_queue: int = option(
        32,
        read=limit(1, 10_000),
        metavar="NUMBER",
        group=_GROUP,
        help="messages that may wait for the application, 1 MiB at most; then the client is not read",
    )
    ws_per_message_deflate: bool = option(
        True,
        read=switch,
        metavar="BOOLEAN",
        group=_GROUP,
        help="compress messages for clients that offer it: true or false",
    )
    ws_accept_timeout: float = option(
        30.0,
        read=seconds,
        metavar="TIME",
        group=_GROUP,
        help="for an application to accept or refuse a WebSocket; then 504, and it is cancelled; 0: any",
        differs=_NEW,
    )
    ws_ping_interval: float | None = option(
        cast("float | None", 20.0),
        read=maybe(seconds),
        metavar="TIME",
        takes_none=True,
        group=_GROUP,
        help="between two pings, which are sent also while Python blocks; 0: none",
    )
    ws_ping_timeout: float | None = option(
        cast("float | None", 20.0),
        read=maybe(seconds),
        metavar="TIME",
        takes_none=True,
        group=_GROUP,
        help="for a client's first byte after a ping; 0: any",
    )
    ws_idle_timeout: float = option(
        0.0,
        read=seconds,
        metavar="TIME",
        group=_GROUP,
        help="close, with 1001, what had no message in either direction for so long; 0: never",
        differs=_NEW,
    )
    ws_lifetime: float = option(
        0.0,
        read=seconds,
        metavar="TIME",
        group=_GROUP,
        help="close, with 1001, what was accepted so long ago; 0: never",
        differs=_NEW,
    )
