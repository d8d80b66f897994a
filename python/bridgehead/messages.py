"""ASGI's messages as lines of the log, at `--log-level trace`: uvicorn's lines, for the same questions.

Not the reasons for refusals and not access lines, which Rust tells of.

Invariant: of a body, a header or anything else that a client can make long, only its size is said.
"""

import itertools
import reprlib
from collections.abc import Mapping, MutableMapping
from typing import Any

from bridgehead import log
from bridgehead.asgi import Application, Receive, Send

_LONGEST = 200  # of what is shown as it came: enough to recognise a path by
_TIMES = 10  # as many members of a message are more than ASGI has

# What they hold may be secret, is long, or is the application's own.
_SIZED = frozenset({"body", "bytes", "text", "headers"})
_LEFT_OUT = frozenset({"state", "app", "extensions", "router", "endpoint"})
_AS_THEY_ARE = frozenset(map(chr, range(ord(" "), ord("~") + 1))) - {'"', "\\"}


def traced(application: Application) -> Application:
    """The application, with a line for each message between it and the server."""
    numbers = itertools.count(1)

    async def telling(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        where = f"{_address(scope.get('client'))}ASGI [{next(numbers)}]"

        async def told_receive() -> MutableMapping[str, Any]:
            message = await receive()
            log.message("%s Receive %s", where, _shown(message))
            return message

        async def told_send(message: MutableMapping[str, Any]) -> None:
            log.message("%s Send %s", where, _shown(message))
            await send(message)

        log.message("%s Started scope=%s", where, _shown(scope))
        try:
            await application(scope, told_receive, told_send)
        except BaseException as error:
            log.message("%s Raised %s", where, type(error).__name__)
            raise
        log.message("%s Completed", where)

    return telling


def _address(client: object) -> str:
    if not isinstance(client, tuple | list) or len(client) != 2:
        return ""
    # A proxy may have named it in any words. They are escaped as access lines have them.
    host = "".join(letter if letter in _AS_THEY_ARE else _escaped(letter) for letter in str(client[0]))
    return f"{host}:{client[1]} - "


def _escaped(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogatepass"))


def _shown(message: object) -> str:
    """A message with its type first, as it came, and placeholders for what may be long."""
    if not isinstance(message, Mapping):
        return f"<{type(message).__name__}>"
    parts = [f"{key!r}: {_value(key, message[key])}" for key in message if key not in _LEFT_OUT]
    return "{" + ", ".join(parts) + "}"


def _value(key: object, value: object) -> str:
    if key not in _SIZED or value is None:
        return _excerpt.repr(value)
    try:
        size = len(value)  # type: ignore[arg-type]
    except TypeError:
        return f"<{type(value).__name__}>"
    return f"<{size} {key if key == 'headers' else 'bytes'}>"


_excerpt = reprlib.Repr()
_excerpt.maxstring = _excerpt.maxother = _LONGEST
_excerpt.maxdict = _excerpt.maxlist = _excerpt.maxtuple = _TIMES
