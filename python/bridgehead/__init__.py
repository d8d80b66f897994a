"""Bridgehead: an ASGI server on a Rust bridge.

Start it with `serve app:app`. What an application may import is here; it is loaded when it is asked for,
since `serve --version` needs none of it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridgehead._native import ClientDisconnected as ClientDisconnected
    from bridgehead._native import MisuseError as MisuseError

__all__ = ["ClientDisconnected", "MisuseError"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from bridgehead import _native

        return getattr(_native, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
