"""What a case may ask of its surroundings: what is another thing in a server than in a program.

Invariant: a case cannot tell by the results which of the two it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

Errand = Callable[[], Awaitable[None]]


class World(Protocol):
    """The surroundings of one case."""

    async def elsewhere(self, errand: Errand) -> None:
        """Have `errand` run by a request of its own, and wait until it is done."""

    async def wait_for_ever(self) -> None:
        """Wait for what does not come, in the way in which one waits here."""


class Plain:
    """Under `asyncio.run` another task is what another request is in a server."""

    async def elsewhere(self, errand: Errand) -> None:
        async def run() -> None:
            await errand()

        await asyncio.create_task(run())

    async def wait_for_ever(self) -> None:
        await asyncio.get_running_loop().create_future()
