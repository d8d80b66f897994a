"""`uvicorn.config`: uvicorn's `Config`, on our own, and the constants that programs read.

Not the meaning of an option, which is `bridgehead.config`'s; what was not given has Bridgehead's default.

Invariant: each attribute that uvicorn's has is there, and can be assigned.
"""

import logging
import os
import ssl
from collections.abc import Awaitable, Callable
from configparser import RawConfigParser
from pathlib import Path
from typing import IO, Any, Literal

from bridgehead import server_config
from bridgehead.asgi import Application
from bridgehead.compat.uvicorn.parameters import KEPT, OF_CONFIG, of_a_method
from bridgehead.compat.uvicorn.tls import Context
from bridgehead.errors import EXIT_START_FAILED, StartError
from bridgehead.formatters import TRACE as TRACE_LOG_LEVEL
from bridgehead.lifespan import Lifespan
from bridgehead.logging_config import LOGGING_CONFIG as LOGGING_CONFIG

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
}
INTERFACES: list[InterfaceType] = ["auto", "asgi3", "asgi2", "wsgi"]
SSL_PROTOCOL_VERSION: int = ssl.PROTOCOL_TLS_SERVER
STARTUP_FAILURE = EXIT_START_FAILED


class UvicornDeprecationWarning(UserWarning):
    """What uvicorn warns of that will go; programs name it in their filters."""


_PATHS = ("env_file", "uds", "app_dir", "ssl_keyfile", "ssl_certfile", "ssl_ca_certs")


class Config(server_config.Config):
    """uvicorn's configuration: its parameters in its order, and ours by keyword."""

    callback_notify: Callable[..., Awaitable[None]] | None
    timeout_notify: float
    ssl_context_factory: None

    def __init__(self, *positional: Any, **named: Any) -> None:
        given = OF_CONFIG.bind(*positional, **named).arguments
        kept = {name: given.pop(name) for name in KEPT & given.keys()}
        self._refuse_foreign(given, kept)
        super().__init__(**{name: _ours(name, value) for name, value in given.items()})
        self.callback_notify = kept.get("callback_notify")
        self.timeout_notify = kept.get("timeout_notify", 30)
        self.ssl_context_factory = None
        self._lifespan_class: type[Lifespan] | None = None

    @staticmethod
    def _refuse_foreign(given: dict[str, Any], kept: dict[str, Any]) -> None:
        """What nothing here could be made of is said at once."""
        if kept.get("ssl_context_factory") is not None:
            raise StartError(
                "ssl_context_factory makes a context of Python's, and TLS is spoken by rustls here",
                "name the files by ssl_certfile, ssl_keyfile and ssl_ca_certs",
            )
        ws = given.get("ws")
        if isinstance(ws, type) or (isinstance(ws, str) and ":" in ws):
            raise StartError(
                f"{ws!r} is a protocol of Python's, and WebSockets are spoken in Rust here", "leave it out"
            )

    @property
    def lifespan_class(self) -> Any:
        """What a server starts and ends the application with; may be assigned."""
        if self._lifespan_class is not None:
            return self._lifespan_class
        from bridgehead.compat.uvicorn.lifespan.on import LifespanOn

        return LifespanOn

    @lifespan_class.setter
    def lifespan_class(self, chosen: type[Lifespan]) -> None:
        self._lifespan_class = chosen

    @property
    def ssl(self) -> Context | None:
        """What stands for the context of Python's, where TLS is on."""
        return Context(self) if self.is_ssl else None

    @property
    def reload_dirs_excludes(self) -> list[Path]:
        """The directories among the patterns of what is not watched."""
        return [Path(each) for each in self.reload_excludes if Path(each).is_dir()]

    def load_app(self) -> Application:
        """Find the application; uvicorn's `load` in two steps."""
        self.load()
        return self.loaded_app

    def get_loop_factory(self) -> Any:
        """None for `loop="none"`: the caller's own way of making loops."""
        return None if self.loop == "none" else super().get_loop_factory()

    def setup_event_loop(self) -> None:
        """Gone in uvicorn since 0.36."""
        raise AttributeError("`setup_event_loop` was replaced by `get_loop_factory` in uvicorn 0.36.0")


Config.__init__.__signature__ = of_a_method(OF_CONFIG)  # type: ignore[attr-defined]


def _ours(name: str, value: Any) -> Any:
    """What our own reader takes for a value that uvicorn's takes."""
    if name in _PATHS and isinstance(value, os.PathLike):
        return os.fspath(value)
    if name == "log_config":
        return _log_config(value)
    if name in ("reload_dirs", "reload_includes", "reload_excludes"):
        return [value] if isinstance(value, str) else [os.fspath(each) for each in value or ()]
    return value


def _log_config(value: dict[str, Any] | str | os.PathLike[str] | RawConfigParser | IO[Any] | None) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, str | dict):
        return value
    import logging.config

    logging.config.fileConfig(value, disable_existing_loggers=False)
    return None
