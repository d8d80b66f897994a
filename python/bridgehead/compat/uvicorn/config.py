"""`uvicorn.config`: uvicorn's `Config`, on our own, and the constants that programs read.

Not the meaning of an option, which is `bridgehead.config`'s; what was not given has Bridgehead's default.

Invariant: each attribute that uvicorn's has is there, and can be assigned.
"""

import logging
import ssl
from typing import TYPE_CHECKING, Any, Literal

from bridgehead import server_config
from bridgehead.errors import EXIT_START_FAILED
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


class Config(server_config.Config):
    """uvicorn's configuration: its parameters in its order, and ours by keyword."""

    if TYPE_CHECKING:  # programs that were written for it are not asked for our types

        def __init__(self, *positional: Any, **named: Any) -> None: ...

    def _own_lifespan(self) -> type[Lifespan]:
        from bridgehead.compat.uvicorn.lifespan.on import LifespanOn

        return LifespanOn

    def get_loop_factory(self) -> Any:
        """None for `loop="none"`: the caller's own way of making loops."""
        return None if self.loop == "none" else super().get_loop_factory()
