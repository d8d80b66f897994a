"""How long things may take and how large they may be: options, as a part of `Config`.

Those of clients are enforced by Rust, which reads them off a `Config`; 0 is none where there may be none.
"""

# ruff: noqa: RUF009 (`option` returns a dataclass field, which is what belongs there)

from dataclasses import dataclass

from bridgehead import uvicorn_defaults
from bridgehead.options import Shape, limit, maybe, number_or, option, switch, whole
from bridgehead.quantities import Bytes, at_most, seconds, size, some
from bridgehead.websocket_options import WebSocketOptions

_NEW = "new: uvicorn has no such option"


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class Bounds(WebSocketOptions):
    """Deadlines and limits."""

    timeout_first_byte: float = option(
        15.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="close a new connection that sends nothing for so long; 0: never",
        differs=_NEW,
    )
    timeout_header: float = option(
        10.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="time for a whole head, from its first byte; 0: no end",
        differs=_NEW + ", and waits for ever",
    )
    timeout_body: float = option(
        30.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="the longest gap in a body that the application waits for; 0: no end",
        differs=_NEW + ", and waits for ever",
    )
    timeout_write: float = option(
        30.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="the longest time without progress of a client that reads an answer; 0: no end",
        differs=_NEW + ", and waits for ever",
    )
    timeout_request: float = option(
        0.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="cancel a handler that has not answered in full for so long; 0: never",
        differs=_NEW,
    )
    timeout_queue: float = option(
        1.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="how long a request may wait for another to end, above --limit-concurrency; 0: no end",
        differs=_NEW,
    )
    timeout_keep_alive: float = option(
        75.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="close a connection that has been idle for so long",
        differs="uvicorn: 5. Proxies keep idle connections for 60 s; who closes first loses requests",
    )
    connection_lifetime: float = option(
        3600.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="end a connection with its next answer when it is so old, a tenth more or less; 0: never",
        differs=_NEW,
    )
    http2_ping_interval: float = option(
        30.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="ask a client of HTTP/2 that waits for an answer and has been silent for so long; 0: never",
        differs=_NEW,
    )
    http2_ping_timeout: float = option(
        10.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="for its next byte after that; 0: any",
        differs=_NEW,
    )
    timeout_graceful_shutdown: float = option(
        25.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="time for a stop: of 25 s requests get 18, cancelling 2, the lifespan 5; see docs/shutdown.md",
        differs="uvicorn: none, waits for ever. Kubernetes kills after 30 s; we end in order before it",
    )
    timeout_worker_healthcheck: float = option(
        30.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="replace a worker, of several, whose event loop has not answered for so long; 0: never",
        differs="uvicorn: 5, and a thread answers for the loop",
    )
    drain_delay: float | None = option(
        None,
        read=maybe(seconds),
        metavar="TIME",
        unset="0, or 5 under Kubernetes",
        group="Timeouts",
        help="when told to end, serve for so long first, while clients are still sent here; part of the stop",
        differs="new: uvicorn stops listening at once",
    )
    timeout_lifespan_startup: float = option(
        60.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="time for the application's lifespan startup",
        differs=_NEW + ", and waits for ever",
    )
    timeout_lifespan_shutdown: float = option(
        5.0,
        read=seconds,
        metavar="TIME",
        group="Timeouts",
        help="time for the application's lifespan shutdown",
        differs=_NEW + ", and waits for ever",
    )
    limit_connections: int | None = option(
        None,
        read=maybe(limit(0, 2**31 - 1)),
        metavar="NUMBER",
        unset="as there are files for",
        group="Limits",
        help="the most connections; further ones wait in the backlog; 0: any number. Unset: 10000 at most",
        differs=_NEW,
    )
    limit_connection_requests: int = option(
        0,
        read=limit(0, 2**31 - 1),
        metavar="NUMBER",
        group="Limits",
        help="the most requests of a connection; 0: any number",
        differs=_NEW,
    )
    limit_concurrency: int | str = option(
        1000,
        read=number_or("auto", limit(0, 2**31 - 1)),
        metavar="NUMBER|auto",
        group="Limits",
        help="the most requests that the application works on at once; 0: any; auto: by how long they take",
        differs="uvicorn: none. It counts connections too, and refuses at once; here others wait",
    )
    limit_queue: int = option(
        1000,
        read=limit(0, 2**31 - 1),
        metavar="NUMBER",
        group="Limits",
        help="the most requests that wait for others to end; beyond it, and without it (0): 503",
        differs=_NEW,
    )
    cancel_on_disconnect: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="Limits",
        help="cancel a handler when its client goes before the answer is complete, or sends no more",
        differs=_NEW,
    )
    limit_target: Bytes = option(
        Bytes(8 * 1024),
        read=some(65_534),
        metavar="SIZE",
        group="Limits",
        help="the longest request target, 65534 at most",
        differs="uvicorn: 64 KiB. What a request costs before it is judged has to be bounded",
    )
    limit_headers: int = option(
        100,
        read=whole(1, 10_000),
        metavar="NUMBER",
        group="Limits",
        help="the most header lines of a request",
        differs=_NEW + ", and no bound",
    )
    limit_header_bytes: Bytes = option(
        Bytes(32 * 1024),
        read=at_most(16 * 1024**2),
        metavar="SIZE",
        group="Limits",
        help="the largest header lines of a request, all together",
        differs=_NEW + ", and 64 KiB",
    )
    limit_body: Bytes = option(
        Bytes(100 * 1024**2),
        read=size,
        metavar="SIZE",
        group="Limits",
        help="the largest request body; 0: any",
        differs=_NEW + ", and no bound. FastAPI keeps bodies in memory",
    )
    min_rate: Bytes = option(
        Bytes(240),
        read=size,
        metavar="SIZE",
        group="Limits",
        help="bytes a second, at least, of a client that has been waited for longer than 5 s; 0: any",
        differs=_NEW + ", and waits for ever",
    )
    compat: str | None = option(
        None,
        read=uvicorn_defaults.read,
        metavar="uvicorn",
        group="Limits",
        help="uvicorn: defaults and limits as it has them, see docs/limits.md; what is given outranks them",
        differs=_NEW,
    )
