"""Bridgehead: an ASGI server on a Rust bridge.

Start it with `serve app:app`, or in code with `bridgehead.run(app)`. What a program may import is here; it is
loaded when it is asked for, since `serve --version` needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridgehead._native import ClientDisconnected as ClientDisconnected
    from bridgehead._native import MisuseError as MisuseError
    from bridgehead.errors import StartError as StartError
    from bridgehead.program import run as run
    from bridgehead.server import Server as Server
    from bridgehead.server_config import Config as Config

__all__ = ["ClientDisconnected", "Config", "MisuseError", "Server", "StartError", "run"]

_HOMES = {
    "ClientDisconnected": "_native",
    "Config": "server_config",
    "MisuseError": "_native",
    "Server": "server",
    "StartError": "errors",
    "run": "program",
}


def __getattr__(name: str) -> object:
    if name == "config":  # programs look for LOGGING_CONFIG there
        return import_module(f"{__name__}.config")
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
