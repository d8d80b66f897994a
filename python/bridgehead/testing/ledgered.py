"""An application that notes its requests in a ledger, for a canary to compare: `app = Ledgered(app)`.

Not for production: it is there for tests that restart, stop and kill a server.

Invariant: a request without the canary's header passes untouched, and an application without a ledger as
well.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from bridgehead.testing.ledger import VARIABLE, Event, Ledger

HEADER = b"x-canary"
Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


class Ledgered:
    """An ASGI middleware. The folder is an argument, or in the environment; else it notes nothing."""

    def __init__(self, app: Application, folder: str | os.PathLike[str] | None = None) -> None:
        self.app = app
        place = folder if folder is not None else os.environ.get(VARIABLE)
        self._folder = os.fspath(place) if place else None
        self._ledger: Ledger | None = None
        self._process = 0

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Note the start, and how it ended."""
        request = canary_of(scope)
        if request is None or self._folder is None:
            return await self.app(scope, receive, send)
        ledger = self._of_this_process(self._folder)
        ledger.note(request, Event.STARTED)
        try:
            await self.app(scope, receive, send)
        except asyncio.CancelledError:
            ledger.note(request, Event.CANCELLED)
            raise
        except BaseException:
            ledger.note(request, Event.FAILED)
            raise
        ledger.note(request, Event.FINISHED)
        return None

    def _of_this_process(self, folder: str) -> Ledger:
        # A worker may be forked from the process that made this.
        if self._ledger is None or self._process != os.getpid():
            self._ledger, self._process = Ledger(folder), os.getpid()
        return self._ledger


def canary_of(scope: Scope) -> int | None:
    """The id that the canary has given a request."""
    if scope["type"] != "http":
        return None
    return next((int(value) for name, value in scope["headers"] if name == HEADER), None)
