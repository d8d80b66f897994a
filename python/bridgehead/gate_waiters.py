"""Who waits before a gate, each on a loop of its own, and is told from wherever a slot is given back.

Not whose turn it is: Rust knows (`gate.rs`).

Invariant: nobody keeps a place or a slot whose loop is closed, once the gate is asked for anything.
"""

import asyncio
import weakref
from functools import partial
from itertools import chain

from bridgehead._native import Entry
from bridgehead._native import Gate as Slots


class Waiter:
    """Somebody who waits."""

    # It does not know its entry, which calls it: Python could not free the two.
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._told: asyncio.Future[None] = loop.create_future()

    async def until_told(self) -> None:
        """It is to look again."""
        await self._told
        self._told = self._loop.create_future()

    def wake(self) -> None:
        """From any thread. RuntimeError if its loop is closed."""
        if asyncio._get_running_loop() is self._loop:
            self.tell()
        else:
            self._loop.call_soon_threadsafe(self.tell)

    def tell(self) -> None:
        """On its loop."""
        if not self._told.done():
            self._told.set_result(None)


class Waiters:
    """All who wait before one gate."""

    def __init__(self, slots: Slots, patience: float | None) -> None:
        self._slots = slots
        self._patience = patience
        # What is a loop's is changed on its thread alone, until the loop is closed.
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Waiter, Entry]] = (
            weakref.WeakKeyDictionary()
        )

    async def wait(self) -> None:
        """Until there is a slot for this one."""
        self.forget_closed_loops()
        loop = asyncio.get_running_loop()
        waiter = Waiter(loop)
        entry = self._slots.line_up(partial(self._wake, waiter))
        there = self._by_loop.setdefault(loop, {})
        there[waiter] = entry
        timer: asyncio.TimerHandle | None = None
        try:
            while not entry.look():
                if timer is None and self._patience is not None:
                    timer = loop.call_later(self._patience, self._expire, waiter, entry)
                await waiter.until_told()
        finally:
            there.pop(waiter, None)
            entry.leave()
            if timer is not None:
                timer.cancel()

    def forget_closed_loops(self) -> None:
        """Nobody takes what is handed to who waits on a closed loop: the next has it."""
        loops = [each() for each in self._by_loop.keyrefs()]
        # All are taken out first: whoever is next may be one of them, and is not looked for again meanwhile.
        gone = [
            tuple(self._by_loop.pop(loop, {}).values())
            for loop in loops
            if loop is not None and loop.is_closed()
        ]
        for entry in chain.from_iterable(gone):
            entry.forget()

    def _wake(self, waiter: Waiter) -> None:
        try:
            waiter.wake()
        except RuntimeError:  # its loop is closed
            self.forget_closed_loops()

    def _expire(self, waiter: Waiter, entry: Entry) -> None:
        self.forget_closed_loops()  # one of them may have what this one waits for
        entry.expire()
        waiter.tell()
