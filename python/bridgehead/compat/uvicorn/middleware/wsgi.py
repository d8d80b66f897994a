"""`uvicorn.middleware.wsgi`: a WSGI application as an ASGI 3 one.

Invariant: it is `--interface wsgi`, whose threads are a2wsgi's.
"""

from typing import Any

from bridgehead.wsgi import from_wsgi


class WSGIMiddleware:
    """Runs the application in threads."""

    def __init__(self, app: Any, workers: int = 10) -> None:
        self.app = app
        self._adapted = from_wsgi(app, workers)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As any ASGI 3 application is called."""
        await self._adapted(scope, receive, send)
