"""From options to a run that Rust understands: whom to ask, and for what.

Not the TOML of scenarios (`scenarios.py`), and no socket: nothing here connects.

Invariant: a plan names a host and port or a Unix socket, never both, and has a scenario at least.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from bridgehead.errors import StartError
from bridgehead.load.options import HTTP_1, LoadOptions

_FORMS = "write http://host:port/path or unix:/path/to.sock"
WEBSOCKET = "websocket"
# Of each scheme: whether it is by TLS, and its port.
_SCHEMES = {"http": (False, 80), "https": (True, 443), "ws": (False, 80), "wss": (True, 443)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A body that is made as it is sent."""

    size: int
    chunk: int = 65536
    every: float = 0.0  # seconds before each chunk but the first
    declared: bool = False  # by Content-Length; else chunked


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One kind of request. A `str` body is a template, `bytes` are sent as they are."""

    path: str
    name: str = ""
    weight: int = 1
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | bytes | None = None
    upload: Upload | None = None
    think: tuple[float, float] | None = None
    expect_status: tuple[int, ...] = ()
    expect_headers: tuple[tuple[str, str], ...] = ()
    expect_body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom to connect to, and what for."""

    host: str  # a path when there is no port
    port: int | None
    tls: str | None  # the name to ask for; None: in the clear
    websocket: bool
    authority: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run; Rust reads the attributes as they are."""

    target: str  # as shown
    host: str
    port: int | None
    tls: str | None
    protocol: str  # "1.1", "2" or "websocket"
    streams: int  # at once on a connection of HTTP/2
    authority: str
    scenarios: Sequence[Scenario]
    connections: int
    threads: int
    rate: float | None
    duration: float | None
    requests: int | None
    warmup: float
    timeout: float
    keep_alive: bool
    seed: int


def plan_of(options: LoadOptions, scenarios: Sequence[Scenario] = ()) -> Plan:
    """The run that is asked for; `scenarios` outrank a file of them, and that the single request."""
    from bridgehead.load.scenarios import read_scenarios

    target = parse_target(options.url, options.uds)
    _check_protocol(options, target)
    if not scenarios and options.scenarios is not None:
        scenarios = read_scenarios(Path(options.scenarios), target.path)
    return Plan(
        target=options.url or f"unix:{options.uds}",
        host=target.host,
        port=target.port,
        tls=target.tls,
        protocol=WEBSOCKET if target.websocket else options.http,
        streams=options.streams,
        authority=target.authority,
        scenarios=tuple(map(_named, scenarios)) or (_single(options, target.path),),
        connections=options.connections,
        threads=options.threads,
        rate=options.rate,
        duration=options.measured,
        requests=options.requests,
        warmup=options.warmup,
        timeout=options.timeout,
        keep_alive=options.keep_alive,
        seed=options.seed,
    )


def asked(scenario: Scenario) -> dict[str, object]:
    """What two runs are told apart by. Of headers the names alone: values may be secrets."""
    body = scenario.body.encode() if isinstance(scenario.body, str) else scenario.body
    return {
        "name": scenario.name,
        "weight": scenario.weight,
        "method": scenario.method,
        "path": scenario.path,
        "headers": sorted(name.lower() for name, _ in scenario.headers),
        "body": None if body is None else {"bytes": len(body), "sha256": sha256(body).hexdigest()},
        "upload": None if scenario.upload is None else asdict(scenario.upload),
        "think": None if scenario.think is None else list(scenario.think),
    }


def _check_protocol(options: LoadOptions, target: Target) -> None:
    if not target.websocket:
        return
    if options.http != HTTP_1:
        raise StartError("messages go by HTTP/1.1", "leave http out, or write http:// instead of ws://")
    if options.expect_status:
        raise StartError("a message has no status that could be expected", "leave expect-status out")


def parse_target(url: str, uds: str | None) -> Target:
    """Take an address apart."""
    if url.startswith("unix:"):
        if uds is not None:
            raise StartError(f"{url!r} and uds are two sockets", "give one of them")
        path = url.removeprefix("unix:")
        return Target(
            host=_socket(path), port=None, tls=None, websocket=False, authority="localhost", path="/"
        )
    if not url and uds is not None:
        url = "http://localhost/"
    parts = _split(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host, port = parts.hostname or "", _port(parts, url)
    place = (host, port) if uds is None else (_socket(uds), None)
    return Target(
        host=place[0],
        port=place[1],
        tls=host if _SCHEMES[parts.scheme][0] else None,
        websocket=parts.scheme in ("ws", "wss"),
        authority=parts.netloc,
        path=path,
    )


def _split(url: str) -> SplitResult:
    if not url:
        raise StartError("no URL was given", _FORMS)
    if any(letter.isspace() or not letter.isprintable() for letter in url):
        # `urlsplit` leaves line feeds and tabs out, and would ask for another path.
        raise StartError(f"{url!r} has a blank or a control character in it", "write it as %20, %0A")
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if scheme not in _SCHEMES:
        hint = _FORMS if scheme else f"write http://{url.lstrip('/')}"
        raise StartError(f"{url!r} is not a URL that load can be put on", hint)
    try:
        parts = urlsplit(url)
    except ValueError as problem:
        raise StartError(f"{url!r} is not a URL: {str(problem).lower()}", _FORMS) from None
    if not parts.hostname or not parts.netloc.isascii():
        raise StartError(f"{url!r} names no host", _FORMS)
    if parts.fragment:
        raise StartError(f"{url!r} has a #fragment, which no server ever sees", "leave it out")
    if "@" in parts.netloc:
        raise StartError("a URL with a password is not understood", "send --header 'Authorization: …'")
    return parts


def _port(parts: SplitResult, url: str) -> int:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise StartError(f"{url!r} has no port from 1 to 65535", _FORMS)
    return port or _SCHEMES[parts.scheme][1]


def _socket(path: str) -> str:
    path = "/" + path.lstrip("/") if path.startswith("//") else path
    if not path:
        raise StartError("unix: names no socket", _FORMS)
    return path


def _named(scenario: Scenario) -> Scenario:
    return scenario if scenario.name else replace(scenario, name=f"{scenario.method} {scenario.path}")


def _single(options: LoadOptions, path: str) -> Scenario:
    body: str | bytes | None = options.body
    if options.body_file is not None:
        body = read_file(Path(options.body_file))
    return Scenario(
        path=path,
        name=f"{options.method} {path}",
        method=options.method,
        headers=options.headers,
        body=body,
        expect_status=options.expect_status,
        expect_body=None if options.expect_body is None else options.expect_body.encode(),
    )


def read_file(file: Path) -> bytes:
    """A body from a file."""
    try:
        return file.read_bytes()
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise StartError(f"{file} cannot be read: {why}", "name a file that can be read") from None
