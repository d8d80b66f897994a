"""One end, however many ask for it at once: a program may end a server that a signal ends already.

Not what the end is (`server.py`).

Invariant: nobody is told that all is over before it is; one that is broken off is gone through by the next
who waits.
"""

import asyncio
from collections.abc import Awaitable, Callable


class _Run(asyncio.Event):
    """One that goes on, or is over: then this is set."""

    is_whole = False


class SharedEnd:
    """Of one server."""

    def __init__(self) -> None:
        self._run: _Run | None = None

    async def reach(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it, or wait for whoever does it already."""
        while (others := self._run) is not None:
            await others.wait()
            if others.is_whole:
                return
        ours = self._run = _Run()
        try:
            await work()
            ours.is_whole = True
        finally:
            self._run = None
            ours.set()
