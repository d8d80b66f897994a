"""The child's side of its parent: hears on a thread when to stop, and tells how far the child has come.

Not the words (`channel.py`).

Invariant: when the parent says stop, or is gone, the child ends, whatever it has come to.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

from bridgehead import log
from bridgehead.channel import LEVEL, REOPEN, RETIRE, SHOW, STOP, Channel, Stage
from bridgehead.reopening import reopen
from bridgehead.stacks import show


class Parent:
    """Whoever started this process, and holds its sockets.

    `retires_us`: the stop is no end of the server, since another process serves on these sockets.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stop: Callable[[], object] = _die
        self._loop: asyncio.AbstractEventLoop | None = None
        self.retires_us = False
        os.register_at_fork(after_in_child=channel.close)

    def listen(self, said: Sequence[dict[str, Any]]) -> None:
        """Hear it from here on; `said` are its first words."""
        thread = threading.Thread(target=self._listen, args=(said,), name="bridgehead-parent", daemon=True)
        thread.start()

    def calls(self, stop: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
        """What to do from here on when it says stop; it is called on another thread."""
        self._stop = stop
        self._loop = loop

    def tell(self, stage: Stage, within: float = 0.0) -> None:
        """Say how far this process has come, and within how many seconds more is due if it ends."""
        self._channel.send({"stage": stage, "within": within})

    def _listen(self, said: Sequence[dict[str, Any]] | None) -> None:
        while said is not None:
            # What was said just before a stop counts as well.
            self._obey(said)
            if STOP in said or RETIRE in said:
                break
            said = self._channel.receive()
        self.retires_us = said is not None and RETIRE in said
        self._stop()

    def _obey(self, said: Sequence[dict[str, Any]]) -> None:
        for level in (each[LEVEL] for each in said if LEVEL in each):
            log.logger().setLevel(level)
        if REOPEN in said:
            reopen()
        if SHOW in said:
            show(self._loop)


def _die() -> None:
    """While the application is imported nothing can be ended in order, and nothing has to be."""
    os.kill(os.getpid(), signal.SIGTERM)
