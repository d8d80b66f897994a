"""`uvicorn.config`: uvicorn's `Config`, on our own, and the constants that programs read.

Not the meaning of an option, which is `bridgehead.config`'s; what was not given has Bridgehead's default.

Invariant: each attribute that uvicorn's has is there, and can be assigned.
"""

import logging
import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Literal

from bridgehead import forwarded, log, server_config
from bridgehead.compat.uvicorn._types import ASGIApplication as ASGIApplication
from bridgehead.compat.uvicorn.importer import ImportFromStringError as ImportFromStringError
from bridgehead.compat.uvicorn.importer import import_from_string as import_from_string
from bridgehead.compat.uvicorn.middleware.asgi2 import ASGI2Middleware as ASGI2Middleware
from bridgehead.compat.uvicorn.middleware.message_logger import (
    MessageLoggerMiddleware as MessageLoggerMiddleware,
)
from bridgehead.compat.uvicorn.middleware.proxy_headers import (
    ProxyHeadersMiddleware as ProxyHeadersMiddleware,
)
from bridgehead.compat.uvicorn.middleware.wsgi import WSGIMiddleware as WSGIMiddleware
from bridgehead.compat.uvicorn_functions import create_ssl_context as create_ssl_context
from bridgehead.compat.uvicorn_functions import is_dir as is_dir
from bridgehead.compat.uvicorn_functions import resolve_reload_patterns as resolve_reload_patterns
from bridgehead.env_file import read_env_file
from bridgehead.errors import EXIT_START_FAILED, StartError
from bridgehead.formatters import TRACE as TRACE_LOG_LEVEL
from bridgehead.lifespan import Lifespan
from bridgehead.logging_config import LOGGING_CONFIG as LOGGING_CONFIG
from bridgehead.uvicorn_parameters import OF_CONFIG, of_a_method

HTTPProtocolType = Literal["auto", "h11", "httptools", "zttp"]
WSProtocolType = Literal["auto", "none", "websockets", "websockets-sansio", "wsproto"]
LifespanType = Literal["auto", "on", "off"]
LoopFactoryType = Literal["none", "auto", "asyncio", "uvloop", "zuvloop"]
LoopSetupType = LoopFactoryType
InterfaceType = Literal["auto", "asgi3", "asgi2", "wsgi"]

LOG_LEVELS: dict[str, int] = {
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE_LOG_LEVEL,
}
# The names that `http`, `ws`, `lifespan` and `loop` may have, with what they stand for.
HTTP_PROTOCOLS: dict[str, str] = {
    "auto": "uvicorn.protocols.http.auto:AutoHTTPProtocol",
    "h11": "uvicorn.protocols.http.h11_impl:H11Protocol",
    "httptools": "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol",
    "zttp": "uvicorn.protocols.http.zttp_impl:ZttpProtocol",
}
WS_PROTOCOLS: dict[str, str | None] = {
    "auto": "uvicorn.protocols.websockets.auto:AutoWebSocketsProtocol",
    "none": None,
    "websockets": "uvicorn.protocols.websockets.websockets_impl:WebSocketProtocol",
    "websockets-sansio": "uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol",
    "wsproto": "uvicorn.protocols.websockets.wsproto_impl:WSProtocol",
}
LIFESPAN: dict[str, str] = {
    "auto": "uvicorn.lifespan.on:LifespanOn",
    "on": "uvicorn.lifespan.on:LifespanOn",
    "off": "uvicorn.lifespan.off:LifespanOff",
}
LOOP_FACTORIES: dict[str, str | None] = {
    "none": None,
    "auto": "uvicorn.loops.auto:auto_loop_factory",
    "asyncio": "uvicorn.loops.asyncio:asyncio_loop_factory",
    "uvloop": "uvicorn.loops.uvloop:uvloop_loop_factory",
    "zuvloop": "uvicorn.loops.zuvloop:zuvloop_loop_factory",
}
INTERFACES: list[InterfaceType] = ["auto", "asgi3", "asgi2", "wsgi"]
SSL_PROTOCOL_VERSION: int = ssl.PROTOCOL_TLS_SERVER
STARTUP_FAILURE = EXIT_START_FAILED
logger = logging.getLogger("uvicorn.error")


# What programs that hand over None get there; of the others, None is the default.
_NONE_MEANS: dict[str, object] = {
    "host": "",
    "port": 0,
    "server_header": False,
    "date_header": False,
    "access_log": False,
    "proxy_headers": False,
    "ws_per_message_deflate": False,
}


class UvicornDeprecationWarning(UserWarning):
    """What uvicorn warns of that will go; programs name it in their filters."""


class Config(server_config.Config):
    """uvicorn's configuration: its parameters in its order, and ours by keyword."""

    calls_itself = "Uvicorn"

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        self._heed_environment(OF_CONFIG.bind(*positional, **named).arguments)

    def __setattr__(self, name: str, value: object) -> None:
        meant = _NONE_MEANS.get(name) if value is None else value
        super().__setattr__(name, meant)

    def _heed_environment(self, given: Mapping[str, Any]) -> None:
        """As uvicorn does when it is made: the file first, which may say what follows."""
        if self.env_file is not None and not os.path.exists(self.env_file):
            log.logger().warning("No variables are set: there is no file %s", self.env_file)
            self.env_file = None
        if self.env_file is not None:
            variables = read_env_file(self.env_file, os.environ)
            os.environ.update({name: each.value for name, each in variables.items()})
        if given.get("workers") is None and (workers := os.environ.get("WEB_CONCURRENCY")):
            self.workers = workers
        if self.forwarded_allow_ips is None:
            self.forwarded_allow_ips = os.environ.get(forwarded.VARIABLE, forwarded.USUAL)

    def _own_lifespan(self) -> type[Lifespan]:
        from bridgehead.compat.uvicorn.lifespan.on import LifespanOn

        return LifespanOn

    @property
    def http_protocol_class(self) -> Any:
        """uvicorn's, by its name alone: HTTP is spoken in Rust, and another class is refused."""
        from bridgehead.compat.uvicorn.protocols.http.auto import AutoHTTPProtocol

        return AutoHTTPProtocol

    @http_protocol_class.setter
    def http_protocol_class(self, chosen: Any) -> None:
        if chosen is not self.http_protocol_class:
            self.http = chosen

    @property
    def ws_protocol_class(self) -> Any:
        """The same for WebSockets; None where there are to be none."""
        from bridgehead.compat.uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

        return None if self.ws == "none" else AutoWebSocketsProtocol

    @ws_protocol_class.setter
    def ws_protocol_class(self, chosen: Any) -> None:
        if chosen is not self.ws_protocol_class:
            self.ws = "none" if chosen is None else chosen

    def load(self) -> None:
        """As ours; where nothing is found, the reason is logged and the process ends, as uvicorn's does."""
        try:
            super().load()
        except StartError as problem:
            log.outcome(log.ERROR, f"{problem}\n{problem.detail}".rstrip())
            raise SystemExit(STARTUP_FAILURE) from problem

    def bind_socket(self) -> socket.socket:
        """As ours; where it cannot be bound, the reason is logged and the process ends, as uvicorn's does."""
        try:
            return super().bind_socket()
        except StartError as problem:
            log.outcome(log.ERROR, str(problem))
            raise SystemExit(STARTUP_FAILURE) from problem

    def _as_loaded(self, application: Any) -> Any:
        if not self.proxy_headers:
            return application
        from bridgehead.compat.uvicorn.middleware.proxy_headers import DoneBefore

        return DoneBefore(application, self.forwarded_allow_ips or "")

    @property
    def served_app(self) -> Any:
        """What is called for each request, without what Rust has done."""
        from bridgehead.compat.uvicorn.middleware.proxy_headers import DoneBefore

        served = self.loaded_app
        return served.app if type(served) is DoneBefore else served

    def get_loop_factory(self) -> Any:
        """None for `loop="none"`: the caller's own way of making loops. A factory that was given: itself."""
        if callable(self.loop):
            return self.loop
        return None if self.loop == "none" else super().get_loop_factory()


Config.__init__.__signature__ = of_a_method(OF_CONFIG)  # type: ignore[attr-defined]
