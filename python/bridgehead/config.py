"""Every option, once: the command line, the environment, docs/settings.md and Rust all read this.

What a client may cost is in `bounds.py`, TLS in `encryption.py`, how many processes serve in `processes.py`,
proxies in `proxy_options.py`, files in `static_options.py`. Not how an option is read from text
(`options.py`), nor where the values come from (`sources.py`).

Invariant: a `Config` that exists is valid, however it was made or changed.
"""

# ruff: noqa: RUF009 (`option` returns a dataclass field, which is what belongs there)

import os
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

from bridgehead import address, levels
from bridgehead.access_format import read as read_access_format
from bridgehead.compress_options import CompressOptions
from bridgehead.errors import StartError
from bridgehead.log_config import read as read_log_config
from bridgehead.logging_config import LOGGING_CONFIG as LOGGING_CONFIG
from bridgehead.loop_name import Factory as LoopFactory
from bridgehead.loop_name import read as loop_name
from bridgehead.options import (
    Option,
    Shape,
    application,
    below,
    choice,
    each_below,
    folders_below,
    header,
    limit,
    many,
    maybe,
    option,
    options_of,
    path,
    place,
    switch,
    text,
)
from bridgehead.quantities import seconds
from bridgehead.uvicorn_defaults import heeding

Application = Callable[..., Awaitable[None]]

# As `--help` has them.
_GROUPS = [
    *("Application", "Address", "Processes", "TLS", "Proxies", "Responses", "WebSockets"),
    *("Timeouts", "Limits", "Operations", "Development", "Diagnostics", "Logs", "From uvicorn"),
]
_NEW = "new: uvicorn has no such option"


def _polls(value: object) -> bool:
    """A switch, also in the words of watchfiles' variable, which uvicorn's images set."""
    word = value.strip().lower() if isinstance(value, str) else ""
    return word in ("enable", "enabled") or (word not in ("disable", "disabled") and switch(value))


@dataclass(slots=True)
class Config(CompressOptions):
    """How to serve. The attributes are uvicorn's parameter names, and may be assigned; None: the default."""

    calls_itself: ClassVar[str] = "Bridgehead"  # where it is said what is listened on

    app: str | Application = option(
        "",
        read=application,
        shape=Shape.TARGET,
        metavar="TARGET",
        group="Application",
        help="the application: module:attribute, module, path/to/file.py, module:factory()",
    )
    _: KW_ONLY
    app_dir: str = option(
        "",
        read=place,
        metavar="DIR",
        unset="the current directory",
        anchor=below,
        group="Application",
        help="look for the application here; goes first on sys.path",
    )
    factory: bool = option(
        False,
        read=switch,
        shape=Shape.FLAG,
        group="Application",
        help="TARGET is a function that returns the application",
    )
    env_file: str | None = option(
        None,
        read=maybe(path),
        metavar="FILE",
        anchor=below,
        group="Application",
        help="variables to set before the application loads, in .env form; those set already stay",
    )
    root_path: str = option(
        "",
        read=text,
        metavar="PATH",
        group="Application",
        help="the path under which a proxy mounts the application (ASGI root_path)",
    )
    interface: str = option(
        "auto",
        read=choice("auto", "asgi3", "asgi2", "wsgi"),
        metavar="NAME",
        group="Application",
        help="asgi3, asgi2 (called with the scope alone), wsgi (by a2wsgi), or auto: asgi3 or asgi2",
    )
    lifespan: str = option(
        "auto",
        read=choice("auto", "on", "off"),
        metavar="auto|on|off",
        group="Application",
        help="auto: used if the application has it; on: no start without it; off: not asked for",
    )
    loop: str | LoopFactory = option(
        "auto",
        read=loop_name,
        metavar="NAME",
        group="Application",
        help="the event loop: asyncio, uvloop, none, module:factory, or auto: uvloop if it is installed",
    )
    runtime: str = option(
        "auto",
        read=choice("auto", "fused", "threaded"),
        group="Application",
        help="who drives the network: the loop (fused), a thread (threaded), or auto: fused on Linux",
        differs="new. uvicorn has no network of its own to be driven",
    )
    http2: bool = option(
        True,
        read=switch,
        shape=Shape.SWITCH,
        group="Application",
        help="speak HTTP/2 with clients that ask for it; see docs/http2.md",
        differs="uvicorn: off, and only with its zttp parser",
    )
    task_impl: str = option(
        "auto",
        read=choice("auto", "asyncio", "rust"),
        group="Application",
        help="what runs a request's coroutine: asyncio's own task (asyncio, auto), or a drive in Rust (rust)",
        differs="new. uvicorn has asyncio's own tasks only",
    )

    host: str = option(
        "127.0.0.1",
        read=address.bare_host,
        metavar="HOST",
        unset="every interface",
        group="Address",
        help="name or address to listen on; 0.0.0.0 for IPv4, :: for IPv4 and IPv6 of every interface",
    )
    port: int = option(
        8000,
        read=address.read_port,
        metavar="PORT",
        also="PORT",
        group="Address",
        help="port to listen on; 0 takes a free one, and prints it",
    )
    bind: tuple[str, ...] = option(
        (),
        read=many(address.bindable),
        shape=Shape.LIST,
        metavar="ADDRESS",
        anchor=address.bound_below,
        group="Address",
        help="instead of host and port, several times: host:port, [ipv6]:port, :port, unix:/path, fd://number",
        differs=_NEW,
    )
    uds: str | None = option(
        None,
        read=maybe(path),
        metavar="PATH",
        anchor=below,
        group="Address",
        help="listen on a Unix socket; the file left by a dead server is replaced",
    )
    fd: int | None = option(
        None,
        read=maybe(address.read_descriptor),
        metavar="NUMBER",
        group="Address",
        help="listen on a socket that was opened for us (systemd: 3)",
    )
    backlog: int = option(
        2048,
        read=limit(0, 2**31 - 1),
        metavar="NUMBER",
        group="Address",
        help="connections the kernel keeps waiting; it caps this at net.core.somaxconn",
    )

    server_header: bool = option(
        True,
        read=switch,
        shape=Shape.SWITCH,
        group="Responses",
        help="add a Server header",
    )
    date_header: bool = option(
        True,
        read=switch,
        shape=Shape.SWITCH,
        group="Responses",
        help="add a Date header",
    )
    headers: tuple[tuple[bytes, bytes], ...] = option(
        (),
        read=many(header),
        shape=Shape.LIST,
        flag="--header",
        metavar="'NAME: VALUE'",
        group="Responses",
        help="add this header to every response; several times",
    )

    http1_early_hints: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="Responses",
        help="offer http.response.early_hint in HTTP/1.1 too; only if clients and proxies skip a 103",
        differs=_NEW,
    )
    pathsend: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="Responses",
        help="offer http.response.pathsend: files leave by name; not with middleware that rewrites bodies",
        differs=_NEW,
    )

    reload: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="Development",
        help="start the application again when one of its files changes; see docs/reload.md",
    )
    reload_dirs: tuple[str, ...] = option(
        (),
        read=many(place, separator=os.pathsep),
        shape=Shape.LIST,
        flag="--reload-dir",
        metavar="DIR",
        unset="the current directory",
        anchor=each_below,
        group="Development",
        help="watch the files below this one; several times",
    )
    reload_includes: tuple[str, ...] = option(
        (),
        read=many(place),
        shape=Shape.LIST,
        flag="--reload-include",
        metavar="PATTERN",
        unset="*.py",
        anchor=folders_below,
        group="Development",
        help="watch these files too, such as .env or 'templates/*.html'; several times",
    )
    reload_excludes: tuple[str, ...] = option(
        (),
        read=many(place),
        shape=Shape.LIST,
        flag="--reload-exclude",
        metavar="PATTERN",
        unset="hidden ones, caches, virtual environments",
        anchor=folders_below,
        group="Development",
        help="do not watch these files, or what is in these directories; several times",
    )
    reload_delay: float = option(
        0.1,
        read=seconds,
        metavar="TIME",
        group="Development",
        help="a change is one with those that follow within so long",
        differs="uvicorn: 0.25, between two looks. Here nobody looks: the system tells at once",
    )
    reload_poll: bool = option(
        False,
        read=_polls,
        also="WATCHFILES_FORCE_POLLING",
        shape=Shape.SWITCH,
        group="Development",
        help="look at the files twice a second: for network drives and mounts, where the system is silent",
        differs=_NEW,
    )

    log_level: str | int | None = option(
        None,
        read=maybe(levels.read),
        metavar="LEVEL",
        unset="info",
        group="Logs",
        help="what the server says on stderr: critical, error, warning, info, debug, trace",
    )
    log_config: str | dict[str, Any] | None = option(
        "",
        read=read_log_config,
        metavar="FILE",
        anchor=lambda value, folder: below(value, folder) if value else value,
        takes_none=True,
        group="Logs",
        help="where records go, for Python's logging.config: .ini, .json, .toml, .yaml; see docs/logs.md",
    )
    log_format: str = option(
        "text",
        read=choice("text", "json"),
        metavar="text|json",
        group="Logs",
        help="how lines look: uvicorn's text, or one object of JSON each",
        differs=_NEW,
    )
    access_log: bool = option(
        True,
        read=switch,
        shape=Shape.SWITCH,
        group="Logs",
        help="one line a request on stdout",
    )
    access_log_format: str | None = option(
        None,
        read=maybe(read_access_format),
        metavar="FORMAT",
        unset="uvicorn's line",
        group="Logs",
        help="what an access line says, as '{client} {status} {duration} {header{user-agent}}'",
        differs=_NEW,
    )
    request_id: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="Logs",
        help="take or make an X-Request-ID; answers, scope['state'] and log lines have it",
        differs=_NEW,
    )
    use_colors: bool | None = option(
        None,
        read=maybe(switch),
        shape=Shape.SWITCH,
        unset="on a terminal",
        group="Logs",
        help="colours in the logs",
    )

    def __setattr__(self, name: str, value: object) -> None:
        if known := _BY_NAME.get(name):
            try:
                value = known.read(known.default if value is None and not known.takes_none else value)
            except StartError as problem:
                raise problem.within(name) from None
        object.__setattr__(self, name, value)

    def __post_init__(self) -> None:
        address.refuse_twice((*self.bind, *self.insecure_bind))

    def addresses(self) -> tuple[address.Address, ...]:
        """Where to listen, and by what clients are let in."""
        tcp = address.TcpAddress(host=self.host, port=self.port, option="--port")
        ours = (
            map(address.parse_address, self.bind) if self.bind else [address.first_of(self.uds, self.fd, tcp)]
        )
        secured = (replace(each, secure=self.is_ssl) for each in ours)
        return (*secured, *map(address.parse_address, self.insecure_bind))


Config.__init__ = heeding(Config.__init__)  # type: ignore[method-assign]
OPTIONS: tuple[Option, ...] = tuple(sorted(options_of(Config), key=lambda each: _GROUPS.index(each.group)))
_BY_NAME = {each.name: each for each in OPTIONS}
