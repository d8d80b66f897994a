"""`uvicorn.middleware.asgi2`: an ASGI 2 application as an ASGI 3 one.

Invariant: it is `--interface asgi2`.
"""

from typing import Any

from bridgehead.interface import adapt


class ASGI2Middleware:
    """Called with all three, it calls the application twice."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._adapted, _ = adapt(app, "asgi2", "the application")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As any ASGI 3 application is called."""
        await self._adapted(scope, receive, send)
