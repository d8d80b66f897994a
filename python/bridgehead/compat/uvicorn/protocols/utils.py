"""`uvicorn.protocols.utils`: what programs ask of a scope or a transport.

Invariant: `ClientDisconnected` is the exception that `send()` really raises.
"""

import asyncio
import urllib.parse
from typing import Any

from bridgehead._native import ClientDisconnected as ClientDisconnected


def get_remote_addr(transport: asyncio.Transport) -> tuple[str, int] | None:
    """Whose transport it is."""
    bound = transport.get_extra_info("socket")
    if bound is None:
        return _pair(transport.get_extra_info("peername"))
    try:
        return _pair(bound.getpeername())
    except OSError:  # a Unix socket's client under uvloop
        return None


def get_local_addr(transport: asyncio.Transport) -> tuple[str, int | None] | None:
    """On what it was let in."""
    bound = transport.get_extra_info("socket")
    name = transport.get_extra_info("sockname") if bound is None else bound.getsockname()
    return (name, None) if isinstance(name, str) else _pair(name)


def is_ssl(transport: asyncio.Transport) -> bool:
    """Whether it is encrypted."""
    return bool(transport.get_extra_info("sslcontext"))


def get_client_addr(scope: Any) -> str:
    """The client's address and port as one text."""
    client = scope.get("client")
    return f"{client[0]}:{client[1]}" if client else ""


def get_path_with_query_string(scope: Any) -> str:
    """The path as it may stand in a line, and what follows it."""
    path = urllib.parse.quote(scope["path"])
    query: bytes = scope["query_string"]
    return f"{path}?{query.decode('ascii')}" if query else path


def _pair(name: Any) -> tuple[str, int] | None:
    return (str(name[0]), int(name[1])) if isinstance(name, list | tuple) and len(name) >= 2 else None
