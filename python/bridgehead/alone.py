"""The server of `serve` with one worker: one process, until SIGHUP or a limit asks for a successor.

Then a worker is started beside it, on the same sockets. When that is ready this server takes its leave, and
its process goes on as the worker's parent, so that whoever knows its number still reaches the server. Not the
parent (`supervisor/crew.py`), nor how the process becomes it (`succession.py`).

Invariant: clients are let in by this process until its successor is ready; a successor that does not come up
changes nothing.
"""

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from bridgehead import config as options
from bridgehead import forks, log, terminal
from bridgehead._native import Sheet, early_signals_heard, give_back_early_signals, take_early_signals
from bridgehead.command import CommandServer
from bridgehead.home import Home
from bridgehead.notices import Notices
from bridgehead.patience import Patience
from bridgehead.server_config import Config
from bridgehead.station import OWN_PLACE
from bridgehead.taken_signals import Taken
from bridgehead.terminal import Terminal

if TYPE_CHECKING:
    from bridgehead.admin import Desk
    from bridgehead.succession import Succession
    from bridgehead.supervisor.figures import Figures
    from bridgehead.supervisor.hired import Start

_PAUSE = 1.0  # seconds until a limit asks for another successor, when one did not come up
_LONGEST_PAUSE = 30.0
_SCALING = (signal.SIGTTIN, signal.SIGTTOU)
_BLOCKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, *_SCALING)


def run(settings: options.Config, environ: Mapping[str, str]) -> int:
    """Serve until told to stop, by this process or by those that come after it; the exit code."""
    server = Alone(settings, environ)
    server.run()
    server.go_on()
    return server.exit_code


class Alone(CommandServer):
    """A server that can be succeeded."""

    def __init__(self, settings: options.Config, environ: Mapping[str, str]) -> None:
        super().__init__(Config.of(settings))
        self._settings = settings
        self._home = Home(environ=environ, folder=os.getcwd())
        self._terminal = Terminal()
        self._notices = Notices(environ)
        # Closed, the one has the network let nobody in any more, on the other one's word.
        self._lent, self._recalled = socket.socketpair()
        self._recall = self._recalled.fileno()
        forks.register([self._lent, self._recalled])
        self._succession: Succession | None = None
        self._figures: Figures | None = None
        self._desk: Desk | None = None  # from the server's end until its process is a parent
        self._not_before = 0.0
        self._pause = _PAUSE
        self._is_succeeded = False
        self._told = False  # by a signal, to end
        self._is_passed_on = False
        self._put_off: list[Callable[[], None]] = []  # what was asked for before it served

    @property
    def exit_code(self) -> int:
        """That of the application, unless others go on with it."""
        return 0 if self._is_succeeded else super().exit_code

    def _load(self) -> None:
        """Import the application. Who ends meanwhile by SIGTERM says so, and as process 1 ends at all."""
        pid = os.getpid()
        line = f"INFO:     Told to end while the application was imported. Ending process [{pid}].\n"
        take_early_signals(line if log.logger().isEnabledFor(log.INFO) else "")
        try:
            super()._load()
        except BaseException:
            give_back_early_signals()
            raise

    def go_on(self) -> None:
        """Become the parent of whoever serves by now, or see that nobody is left."""
        if self._succession is None:
            return
        if self._is_succeeded and not self._told:
            signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
            self._control.close()
            if not self._control.heard and not self._told:
                self._succession.become_parent(lambda: self._told, self._desk)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)  # it came when the loop was closed
        if not self._is_passed_on:
            self._succession.tell(signal.SIGTERM)
        self._succession.end()
        if self._desk is not None:
            self._desk.close()
        super()._leave()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Python's share of a signal; all of it while the control thread is there no more."""
        self._told = True
        super().handle_exit(sig, frame)

    @property
    def _process_goes_on(self) -> bool:
        return self._is_succeeded

    def _reopen(self) -> None:
        """Also those of the workers, once there is one."""
        super()._reopen()
        if self._succession is not None:
            self._succession.tell(signal.SIGUSR1)

    def _sheet(self) -> Sheet:
        """For operators it is kept when this server is over: others go on to count beside it."""
        if not self.config.admin:
            return super()._sheet()
        # Imported when it is needed: few servers need it.
        from bridgehead.supervisor.figures import Figures

        self._figures = Figures()
        self._figures.sheets.count_start("initial")
        return self._figures.sheets.at(OWN_PLACE)

    def _close_sockets(self) -> None:
        if self._is_succeeded and self._books is not None:
            self._desk = self._books.hand_over_desk()
        super()._close_sockets()

    def _patience(self) -> Patience:
        return Patience.of_retiring(self.config) if self._is_succeeded else super()._patience()

    def _told_by_control(self, number: int) -> None:
        super()._told_by_control(number)
        self._told = True
        if self._succession is not None:
            self._succession.tell(number)
            self._is_passed_on = True

    @contextmanager
    def _hearing_hangups(self) -> Generator[None, None, None]:
        """SIGHUP has everything loaded anew, the certificates and the application."""
        ours = threading.current_thread() is threading.main_thread()
        if not ours or signal.getsignal(signal.SIGHUP) not in (signal.SIG_DFL, signal.SIG_IGN):
            yield
            return
        # For a process that becomes a parent both load everything anew, this program as well.
        numbers = [signal.SIGHUP]
        if signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL:
            numbers.append(signal.SIGUSR2)
        scaling = [each for each in _SCALING if signal.getsignal(each) in (signal.SIG_DFL, signal.SIG_IGN)]
        handlers = [Taken(numbers, self._handle_hangup), Taken(scaling, self._handle_scaling)]
        try:
            yield
        finally:
            if not self._is_succeeded:  # else the process goes on, and none may end it
                for each in handlers:
                    each.give_back()

    def _leave(self) -> None:
        if not self._is_succeeded:  # else its number stays the server's
            super()._leave()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server, and say so."""
        await super().startup(sockets)
        if self.started:
            self._notices.ready()
            self._live()
            self._make_up()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server; it is said unless others go on."""
        if not self._is_succeeded:
            self._notices.stopping()
        await super().shutdown(sockets)

    def _over(self) -> None:
        # Its process goes on, and whoever reads this may tell it so.
        if self._is_succeeded:
            log.process_finished(os.getpid())
        else:
            super()._over()

    def _make_up(self) -> None:
        """What was asked for before it served."""
        for then in self._put_off:
            self._heard(then)
        for number in early_signals_heard():
            os.kill(os.getpid(), number)

    def _live(self) -> None:
        """By the loop: one that is blocked gives no sign of life."""
        self._notices.alive()
        if self._notices.interval is not None:
            asyncio.get_running_loop().call_later(self._notices.interval, self._live)

    def _handle_hangup(self, sig: int, frame: FrameType | None) -> None:
        super()._handle_hangup(sig, frame)
        self._heard(self._hung_up)

    def _handle_scaling(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # Whoever reads from the terminal in here has the system send it again and again, until it is ignored.
        if terminal.is_elsewhere() and signal.signal(sig, signal.SIG_IGN) is signal.SIG_IGN:
            return
        self._heard(partial(self._scale, sig))

    def _heard(self, then: Callable[[], None]) -> None:
        if self._is_succeeded:
            # It is for who is the parent already, and the loop may be closed before it gets to it.
            then()
        elif self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(then)

    def _hung_up(self) -> None:
        if self._terminal.is_lost:
            os.kill(os.getpid(), signal.SIGTERM)
        elif not self.started:
            self._put_off.append(self._hung_up)
        elif self._succession is not None:
            self._succession.tell(signal.SIGHUP)
        else:
            self._notices.reloading()
            log.logger().info("Reloading: this process is succeeded by another once that is ready.")
            self._have_successor("reload")

    def _scale(self, number: int) -> None:
        """One worker more has a parent; one less there cannot be."""
        if not self.started:
            self._put_off.append(partial(self._scale, number))
            return
        if self._succession is None and number == signal.SIGTTOU:
            log.logger().info("One process serves, and stays: there is no worker to take away.")
            return
        if self._succession is None:
            log.logger().info(
                "One worker more is wanted: this process is succeeded by two, once one is ready."
            )
            self._have_successor("added")
        if self._succession is not None:
            self._succession.tell(number)

    def _spend(self, reason: str) -> None:
        if self._succession is None and time.monotonic() >= self._not_before:
            log.logger().info("Process [%d] %s. Another takes over.", os.getpid(), reason)
            self._have_successor("recycled")

    def _have_successor(self, why: "Start") -> None:
        if self.should_exit or not self.started:
            return
        # Imported when it is needed: few servers need it.
        from bridgehead.succession import Succession

        loop = asyncio.get_running_loop()

        def on_the_loop(step: str) -> None:
            with suppress(RuntimeError):  # the loop is closed: it is ending anyway
                loop.call_soon_threadsafe(getattr(self, step))

        self._succession = Succession(
            self._settings,
            self._home,
            lambda: on_the_loop("_take_leave"),
            lambda: on_the_loop("_stay"),
            self._figures,
        )
        # Descriptors of its own: if this server ends before, it closes these.
        theirs = [replace(each, socket=each.socket.dup()) for each in self._bound]
        forks.register(each.socket for each in theirs)
        self._succession.begin(theirs, why)

    def _take_leave(self) -> None:
        """The successor is ready: who comes from here on is for that."""
        if self.should_exit:
            return
        self._is_succeeded = True
        self._lent.close()
        for each in self._bound:
            each.socket.close()
        self._bound = []  # their files are the parent's
        if self._books is not None and self._succession is not None:
            self._books.show(self._succession.sheets)
        log.logger().info(
            "Another process serves from here on. This one, [%d], becomes its parent.", os.getpid()
        )
        self._stop()

    def _stay(self) -> None:
        """The successor did not come up."""
        self._succession = None
        self._notices.ready()
        self._not_before = time.monotonic() + self._pause
        self._pause = min(2.0 * self._pause, _LONGEST_PAUSE)
        log.logger().error("The reload has failed: the new process did not start. This one stays.")
