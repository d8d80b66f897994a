"""`uvicorn.supervisors.basereload`: a process with a target, begun anew when `should_restart` names files.

Not `serve --reload` (`bridgehead.reload`), which keeps the port open meanwhile.

Invariant: there is one child at a time, and none when the supervisor has ended.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import socket
from types import FrameType

from bridgehead import log
from bridgehead._native import Watcher
from bridgehead.compat.uvicorn._subprocess import get_subprocess
from bridgehead.compat.uvicorn.config import Config
from bridgehead.compat.uvicorn.server import HANDLED_SIGNALS, Server
from bridgehead.watched import watched

logger = log.logger()


class BaseReload:
    """What a way of noticing changes is made from: it overrides `should_restart`."""

    def __init__(
        self,
        config: Config,
        target: Callable[..., None] | list[socket] | None = None,
        sockets: list[socket] | None = None,
    ) -> None:
        # Until 0.50 the target came before the sockets; since then there is none.
        if isinstance(target, list):
            target, sockets = None, target
        self.config = config
        self.target = target or Server(config).run
        self.sockets = sockets or []
        self.should_exit = threading.Event()
        self.pid = os.getpid()
        self.reloader_name: str | None = None
        self.is_restarting = False

    def signal_handler(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - Python hands it over
        """The end."""
        self.should_exit.set()

    def run(self) -> None:
        """Until told to stop."""
        self.startup()
        for changes in self:
            if changes:
                shown = ", ".join(repr(os.path.relpath(each)) for each in changes)
                logger.warning("%s detected changes in %s. Reloading...", self.reloader_name, shown)
                self.restart()
        self.shutdown()

    def __iter__(self) -> Iterator[list[Path] | None]:
        while not self.should_exit.is_set():
            try:
                yield self.should_restart()
            except StopIteration:
                return

    def pause(self) -> None:
        """Between two looks; ends the run once it is told to."""
        if self.should_exit.wait(self.config.reload_delay):
            raise StopIteration

    def should_restart(self) -> list[Path] | None:
        """The files that have changed."""
        raise TypeError(f"{type(self).__name__} has to say what has changed: override should_restart")

    def startup(self) -> None:
        """Begin."""
        log.reloader_started(self.pid, str(self.reloader_name))
        for each in HANDLED_SIGNALS:
            signal.signal(each, self.signal_handler)
        self._begin()

    def restart(self) -> None:
        """End the child, and begin another."""
        self._end()
        self._begin()

    def shutdown(self) -> None:
        """End all."""
        self._end()
        for each in self.sockets:
            each.close()
        log.reloader_finished(self.pid)

    def _begin(self) -> None:
        self.process = get_subprocess(self.config, self.target, self.sockets)
        self.process.start()

    def _end(self) -> None:
        self.process.terminate()
        self.process.join()


class WatchedReload(BaseReload):
    """Changes are noticed by the watcher of `serve --reload`."""

    def __init__(
        self,
        config: Config,
        target: Callable[..., None] | list[socket] | None = None,
        sockets: list[socket] | None = None,
    ) -> None:
        super().__init__(config, target, sockets)
        self.reloader_name = "Bridgehead"
        self._watcher = Watcher(watched(config))

    def should_restart(self) -> list[Path] | None:
        """What the watcher has seen."""
        self.pause()
        changed, _, _ = self._watcher.take()
        return [Path(each) for each in changed] or None

    def shutdown(self) -> None:
        """And the watcher."""
        super().shutdown()
        self._watcher.close()
