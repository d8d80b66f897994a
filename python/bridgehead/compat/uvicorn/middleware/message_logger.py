"""`uvicorn.middleware.message_logger`: ASGI's messages as lines of the log.

Invariant: they are the lines of `--log-level trace`.
"""

from typing import Any

from bridgehead.messages import traced


class MessageLoggerMiddleware:
    """Tells of each message between the application and whoever calls it."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._traced = traced(app)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As any ASGI 3 application is called."""
        await self._traced(scope, receive, send)
