"""What a run can be told, each once: the command line and `load()` read this.

Not how a request is made of it: `plan.py` does that.

Invariant: a `LoadOptions` that exists is valid, each value by itself and together.
"""

from dataclasses import dataclass

from bridgehead.errors import StartError
from bridgehead.options import Option, Reader, Shape, many, maybe, option, options_of, switch, text, whole
from bridgehead.quantities import seconds

MOST_CONNECTIONS = 1_000_000
DEFAULT_DURATION = 10.0
HTTP_1, HTTP_2 = "1.1", "2"


def above_zero(read: Reader[float]) -> Reader[float]:
    """What `read` reads, unless it is nothing."""

    def reader(value: object) -> float:
        number = read(value)
        if number <= 0:
            raise StartError(f"{value!r} is not above 0")
        return number

    return reader


def rate(value: object) -> float:
    """Requests a second."""
    try:
        number = float(value) if isinstance(value, (str, int, float)) and value is not True else 0.0
    except ValueError:
        number = 0.0
    if not 0 < number <= 1e9:
        raise StartError(
            f"{value!r} is not a number of requests a second", "write a number such as 500 or 0.5"
        )
    return number


def http_version(value: object) -> str:
    """The one to speak."""
    if str(value) not in (HTTP_1, HTTP_2):
        raise StartError(f"{value!r} is not a version of HTTP that is spoken here", "write 1.1 or 2")
    return str(value)


def pair(value: object) -> tuple[str, str]:
    """A header of a request: `Name: value`, or the two."""
    match value:
        case str() if ":" in value:
            name, _, content = value.partition(":")
            return name.strip(), content.strip()
        case (str() as name, str() as content):
            return name, content
    raise StartError(f"{value!r} is not a header", "write it as `Name: value`")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What to ask for, how often, and how long."""

    url: str = option(
        "",
        read=text,
        shape=Shape.TARGET,
        metavar="URL",
        group="Target",
        help="http://, https://, ws:// or wss://host:port/path, or unix:/path;"
        " a path may have {n}, {uuid}, {random:1-100}",
    )
    uds: str | None = option(
        None,
        read=maybe(text),
        metavar="PATH",
        group="Target",
        help="connect to this Unix socket; URL says the Host header and the path",
    )

    method: str = option("GET", read=text, metavar="NAME", group="Request", help="the method")
    headers: tuple[tuple[str, str], ...] = option(
        (),
        read=many(pair),
        shape=Shape.LIST,
        flag="--header",
        metavar="'NAME: VALUE'",
        group="Request",
        help="send this header; several times. A value may have templates",
    )
    body: str | None = option(
        None,
        read=maybe(text),
        metavar="TEXT",
        group="Request",
        help="send this body, or by a WebSocket this message; it may have templates",
    )
    body_file: str | None = option(
        None, read=maybe(text), metavar="FILE", group="Request", help="send what this file holds, as it is"
    )
    expect_status: tuple[int, ...] = option(
        (),
        read=many(whole(100, 999)),
        shape=Shape.LIST,
        metavar="NUMBER",
        unset="any below 500",
        group="Request",
        help="an answer with another status is an error; several times",
    )
    expect_body: str | None = option(
        None,
        read=maybe(text),
        metavar="TEXT",
        group="Request",
        help="an answer without this text in its body is an error",
    )
    scenarios: str | None = option(
        None,
        read=maybe(text),
        metavar="FILE",
        group="Request",
        help="a TOML file of several kinds of requests, instead of the options above",
    )

    http: str = option(
        HTTP_1,
        read=http_version,
        metavar="1.1|2",
        group="Load",
        help="speak this HTTP; 2 by ALPN to https://, by prior knowledge to http://",
    )
    streams: int = option(
        1,
        read=whole(1, 10_000),
        metavar="NUMBER",
        group="Load",
        help="requests at once on each connection of HTTP/2",
    )
    connections: int = option(
        50,
        read=whole(1, MOST_CONNECTIONS),
        metavar="NUMBER",
        group="Load",
        help="connections at once; each has one request at a time, or one message",
    )
    rate: float | None = option(
        None,
        read=maybe(rate),
        metavar="NUMBER",
        unset="none: each request follows the last answer",
        group="Load",
        help="begin so many requests a second, whether answers come or not; latency counts from the due time",
    )
    duration: float | None = option(
        None,
        read=maybe(above_zero(seconds)),
        metavar="TIME",
        unset=f"{DEFAULT_DURATION:g}, without --requests",
        group="Load",
        help="measure for so long",
    )
    requests: int | None = option(
        None,
        read=maybe(whole(1, 2**53)),
        metavar="NUMBER",
        group="Load",
        help="end after so many requests",
    )
    warmup: float = option(
        0.0, read=seconds, metavar="TIME", group="Load", help="load for so long before measuring"
    )
    timeout: float = option(
        10.0,
        read=above_zero(seconds),
        metavar="TIME",
        group="Load",
        help="time for one request: connecting, sending and the whole answer",
    )
    keep_alive: bool = option(
        True,
        read=switch,
        shape=Shape.SWITCH,
        group="Load",
        help="several requests on a connection; else each has one of its own",
    )
    threads: int = option(
        1, read=whole(1, 1024), metavar="NUMBER", group="Load", help="threads that share the connections"
    )
    seed: int = option(
        0, read=whole(0, 2**63), metavar="NUMBER", group="Load", help="the start of every random choice"
    )

    def __post_init__(self) -> None:
        for each in OPTIONS:
            try:
                value = each.read(getattr(self, each.name))
            except StartError as problem:
                raise problem.within(each.name) from None
            object.__setattr__(self, each.name, value)
        self._check()

    def _check(self) -> None:
        single = ("method", "headers", "body", "body_file", "expect_status", "expect_body")
        defaults = {option.name: option.default for option in OPTIONS}
        given = [name for name in single if getattr(self, name) != defaults[name]]
        if self.scenarios is not None and given:
            flag = given[0].replace("_", "-")
            raise StartError(f"{flag} and scenarios both say what to ask for", "write it into the file")
        if self.body is not None and self.body_file is not None:
            raise StartError("body and body-file are two bodies", "give one of them")
        if self.streams > 1 and self.http != HTTP_2:
            raise StartError(f"{self.streams} streams, and HTTP/1.1 has none", "write --http 2")
        if self.streams > 1 and not self.keep_alive:
            raise StartError(
                "streams share a connection, so each request cannot have one of its own",
                "leave keep-alive or streams as it is",
            )
        if self.threads > self.connections:
            raise StartError(
                f"{self.threads} threads for {self.connections} connections",
                "give each thread a connection at least",
            )

    @property
    def measured(self) -> float | None:
        """How long to measure; None when a number of requests ends it."""
        if self.duration is None and self.requests is None:
            return DEFAULT_DURATION
        return self.duration


OPTIONS: tuple[Option, ...] = options_of(LoadOptions)
