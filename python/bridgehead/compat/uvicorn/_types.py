"""`uvicorn._types`: names for annotations.

Invariant: they promise no more than that scopes and messages are mappings, and applications callables.
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from types import TracebackType
from typing import Any, Protocol

Message = MutableMapping[str, Any]
HTTPScope = MutableMapping[str, Any]
WebSocketScope = MutableMapping[str, Any]
LifespanScope = MutableMapping[str, Any]
WWWScope = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
ASGIVersions = MutableMapping[str, Any]
HTTPRequestEvent = MutableMapping[str, Any]
HTTPResponseStartEvent = MutableMapping[str, Any]
HTTPResponseBodyEvent = MutableMapping[str, Any]
HTTPResponseDebugEvent = MutableMapping[str, Any]
HTTPResponseEarlyHintEvent = MutableMapping[str, Any]
HTTPResponseTrailersEvent = MutableMapping[str, Any]
HTTPServerPushEvent = MutableMapping[str, Any]
HTTPDisconnectEvent = MutableMapping[str, Any]
WebSocketConnectEvent = MutableMapping[str, Any]
WebSocketAcceptEvent = MutableMapping[str, Any]
WebSocketReceiveEvent = MutableMapping[str, Any]
WebSocketSendEvent = MutableMapping[str, Any]
WebSocketResponseStartEvent = MutableMapping[str, Any]
WebSocketResponseBodyEvent = MutableMapping[str, Any]
WebSocketDisconnectEvent = MutableMapping[str, Any]
WebSocketCloseEvent = MutableMapping[str, Any]
LifespanStartupEvent = MutableMapping[str, Any]
LifespanShutdownEvent = MutableMapping[str, Any]
LifespanStartupCompleteEvent = MutableMapping[str, Any]
LifespanStartupFailedEvent = MutableMapping[str, Any]
LifespanShutdownCompleteEvent = MutableMapping[str, Any]
LifespanShutdownFailedEvent = MutableMapping[str, Any]
ASGIReceiveEvent = MutableMapping[str, Any]
ASGISendEvent = MutableMapping[str, Any]
WebSocketEvent = MutableMapping[str, Any]
Environ = MutableMapping[str, Any]

ASGIReceiveCallable = Callable[[], Awaitable[Message]]
ASGISendCallable = Callable[[Message], Awaitable[None]]


class ASGI2Protocol(Protocol):
    """What an application of ASGI 2 is: made from the scope, called with the rest."""

    def __init__(self, scope: Message) -> None: ...

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Answers."""
        ...


ASGI2Application = type[ASGI2Protocol]
ASGI3Application = Callable[[Message, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]
ASGIApplication = ASGI2Application | ASGI3Application
ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]
StartResponse = Callable[..., None]
WSGIApp = Callable[[Message, StartResponse], Iterable[bytes]]
