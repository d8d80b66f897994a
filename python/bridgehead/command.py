"""The server of the command `serve`: its signals are the control thread's, and its end has an exit code.

Not another server: how it starts and ends is `server.py`'s. Not the words on the command line: `cli.py`.

Invariant: the first signal ends it in order, whatever the loop does and whichever thread that is on.
"""

import asyncio
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from bridgehead import config as options
from bridgehead import forks, log, open_files, overdue, own_handlers, reopening
from bridgehead._native import Control
from bridgehead.errors import EXIT_START_FAILED, EXIT_STOP_FAILED, StartError
from bridgehead.identity import identity
from bridgehead.loops import OwnLoop
from bridgehead.server import HANDLED_SIGNALS, Server
from bridgehead.server_config import Config

_BLOCK = 4 * 1024 * 1024


def check(settings: options.Config) -> int:
    """Load the application as `run` does, and nothing more; the exit code."""
    config = Config.of(settings)
    identity(settings)
    if settings.reload:
        from bridgehead.watched import watched

        watched(settings)

    async def load_it() -> int:
        config.load()
        log.outcome(log.INFO, f"{config.loaded_name} loads, and the settings are valid.")
        return 0

    own = OwnLoop(config)
    own.leave_threads()
    return own.run(load_it())


class CommandServer(Server):
    """A server that owns its process."""

    _control: Control

    def __init__(self, config: Config) -> None:
        _keep_free_memory()
        super().__init__(config)
        open_files.raise_limit()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """By the control thread."""
        self._show_itself()
        # Not closed when serving ends: a thread that the application left behind may hold the exit, and a
        # second signal has to work until then.
        loop, patience = asyncio.get_running_loop(), self._patience().longest
        self._control = Control(loop, self._told_by_control, patience, overdue.reason_of_this_thread(loop))
        own_handlers.watch(HANDLED_SIGNALS, self._control.rearm, self._stop)
        try:
            with reopening.on_signal(self._reopen, stays=lambda: self._process_goes_on):
                yield
        finally:
            self._control.detach()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server, in its time: what blocks the loop does not hear that it is over."""
        self._control.expect_start(self.config.timeout_lifespan_startup, EXIT_START_FAILED)
        try:
            await super().startup(sockets)
        finally:
            self._control.has_started()
        if self._books is not None:
            self._control.shows(self._books.watched.sheet)

    @property
    def _process_goes_on(self) -> bool:
        """Whether others serve once this server has ended, and the process is there for them."""
        return False

    def _reopen(self) -> None:
        """Open the files of logs again, between two steps of the loop."""
        self._call_soon(reopening.reopen)

    @property
    def exit_code(self) -> int:
        """What an ordered end comes to."""
        failed = hasattr(self, "lifespan") and self.lifespan.has_failed_to_stop
        return EXIT_STOP_FAILED if failed else 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Python's share of a signal. The control thread counts them, and ends the process at the second."""
        self.should_exit = True

    def _told_by_control(self, number: int) -> None:
        log.logger().debug("Received %s.", signal.Signals(number).name)
        self._stop()

    def _show_itself(self) -> None:
        """Who looks at Python's handler finds a server that says `should_exit`; some streams end by that."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in HANDLED_SIGNALS:
            before = signal.getsignal(number)
            if before in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self.handle_exit)
                forks.replaces(number, self.handle_exit, before)

    def _refuse(self, problem: StartError) -> NoReturn:
        raise problem


def _keep_free_memory() -> None:
    """glibc gives the free end of its heap back as soon as it is 128 KiB, and the next bodies take it anew.

    A block that is let go of has it wait for twice as much (mallopt(3)). Who is idle gives all of it back.
    """
    bytes(_BLOCK)
