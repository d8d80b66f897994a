"""A WSGI application as an ASGI 3 one: a2wsgi runs it in threads, and here it is stopped when nobody listens.

Not the threads, the queue and the environ, which are a2wsgi's.

Invariant: a client that has gone, or a cancelled request, costs its thread one more piece and no more.
"""

import asyncio
import contextvars
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

from bridgehead._native import ClientDisconnected
from bridgehead.asgi import Application
from bridgehead.errors import StartError

_THREADS = 10  # uvicorn's, and a2wsgi's own default


class _Client:
    """Whom an answer is for. The thread looks whether it is still there."""

    def __init__(self, send: Callable[[MutableMapping[str, Any]], Any]) -> None:
        self.gone = False
        self._send = send

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send, or let it fall: an error here would leave the thread waiting in a2wsgi for ever."""
        if self.gone:
            return
        try:
            await self._send(message)
        except ClientDisconnected:
            self.gone = True
        except Exception:
            if not self.gone:
                raise


_client: contextvars.ContextVar[_Client] = contextvars.ContextVar("bridgehead-wsgi-client")


class _Start:
    """`start_response`, which knows whether it was called: ASGI's words say nothing to a WSGI author."""

    def __init__(self, start_response: Callable[..., Any]) -> None:
        self._start_response = start_response
        self._called = False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self._called = True
        return self._start_response(*arguments, **named)

    def assert_called(self, before: str) -> None:
        if not self._called:
            raise RuntimeError(
                f"the WSGI application {before} before it called start_response(status, headers), "
                "which was due first (PEP 3333)"
            )


class _Answer:
    """What the application gave, for as long as there is a client."""

    def __init__(self, pieces: Iterable[bytes], client: _Client, start: "_Start") -> None:
        self._pieces = pieces
        self._client = client
        self._start = start

    def __iter__(self) -> Iterator[bytes]:
        for each in self._pieces:
            self._start.assert_called("gave a piece of its body")
            yield each
            if self._client.gone:
                return
        self._start.assert_called("ended its answer")

    def close(self) -> None:
        """As WSGI has it, whatever became of the answer."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()


def from_wsgi(application: Callable[..., Iterable[bytes]], threads: int = _THREADS) -> Application:
    """The application, to be called as ASGI 3 ones are."""
    try:
        from a2wsgi import WSGIMiddleware
    except ImportError:
        hint = "try `pip install 'bridgehead[wsgi]'`"
        raise StartError("a WSGI application needs the package a2wsgi", hint) from None

    def stoppable(environ: Any, start_response: Any) -> Any:
        start = _Start(start_response)
        return _Answer(application(environ, start), _client.get(), start)

    middleware: Any = WSGIMiddleware(stoppable, workers=threads)

    async def single(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await middleware(scope, receive, send)
            return
        client = _Client(send)
        _client.set(client)
        # Not cancelled with the request: a2wsgi would leave its thread behind, waiting for the queue.
        running = asyncio.ensure_future(middleware(scope, receive, client.send))
        try:
            await asyncio.shield(running)
        finally:
            client.gone = True

    return single
