"""`bridgehead.Server`: one server from its start to its end, in steps that have uvicorn's names.

Not the network (`worker.py`), not the application's part (`lifespan.py`), not the loop (`loops.py`).

Invariant: however `serve()` is left, nothing that it started is left behind.
"""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from bridgehead import early_look, forks, log, pidfile, signal_wake
from bridgehead.books import Books
from bridgehead.errors import EXIT_START_FAILED, Interrupted, StartError
from bridgehead.identity import set_umask
from bridgehead.lifespan import Lifespan
from bridgehead.listening import Listening
from bridgehead.loops import OwnLoop, a_loop_runs, afterwards
from bridgehead.patience import for_left_tasks
from bridgehead.server_config import Config
from bridgehead.server_state import Stateful
from bridgehead.shared_end import SharedEnd
from bridgehead.sockets import Bound, adopt, bind
from bridgehead.station import Station
from bridgehead.taken_signals import Taken, raise_afterwards
from bridgehead.task_trial import choose
from bridgehead.tenure import LOOK, Tenure
from bridgehead.worker import Place, Worker

if TYPE_CHECKING:
    from bridgehead.certificates import Keeper

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_TICK = 0.1  # seconds between looks, for who overrides what is looked at; uvicorn's
_TICKS = 864_000  # then the counter begins anew, as uvicorn's does: after a day


class Server(Stateful):
    """Serves one application: `Server(Config(app)).run()`, or `await server.serve()` in a loop that runs.

    `started` says that clients are let in. Setting `should_exit`, from any thread, ends the server in order;
    `force_exit` as well ends it without waiting for requests, and without the application's shutdown.
    """

    lifespan: Lifespan

    def __init__(self, config: Config) -> None:
        self.config = config
        self.calls_itself: str = config.calls_itself  # its parent may know better
        self.servers: list[Listening] = []
        self.started = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._own: OwnLoop | None = None
        self._changed = asyncio.Event()
        self._starting: asyncio.Task[None] | None = None
        self._told_before = False  # when `serve` began
        self._bound: list[Bound] = []
        self._recall: int | None = None
        self._station: Station | None = None
        self._keeper: Keeper | None = None
        self._tenure: Tenure | None = None
        self._books: Books | None = None
        self._pidfile: pidfile.Pidfile | None = None
        self._captured_signals: list[int] = []
        self._end = SharedEnd()
        self.should_exit = self.force_exit = False

    @property
    def should_exit(self) -> bool:
        """Whether the server is to end."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        self._call_soon(self._look)

    @property
    def force_exit(self) -> bool:
        """Whether the end is not to wait for anybody."""
        return self._force_exit

    @force_exit.setter
    def force_exit(self, value: bool) -> None:
        self._force_exit = value
        self._call_soon(self._look)

    @property
    def ready(self) -> bool:
        """Whether clients are to be sent here: from the start to the first word of the end."""
        return self.started and not self.should_exit

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on a loop of its own, until told to stop. Also on a thread that is not the main one."""
        if a_loop_runs():
            raise RuntimeError("an event loop runs in this thread already: use `await server.serve()` there")
        with self._refusing():
            self._own = OwnLoop(self.config)
        try:
            self._own.run(self.serve(sockets=sockets), self._stop)
        finally:
            self._own = None

    def begin(self) -> None:
        """Serve in this process, or in others where the configuration asks for that."""
        if self.config.use_subprocess:
            self._serve_in_children()
        else:
            self.run()

    def _serve_in_children(self) -> None:
        """Several, or one that begins anew for each change. As in uvicorn no signal is raised again."""
        from bridgehead import reload, supervisor

        with self._refusing():
            (reload if self.config.reload else supervisor).run(self.config, os.environ)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on the loop that runs, until told to stop. SystemExit with code 3 if it cannot start."""
        self._told_before = self.should_exit
        set_umask(self.config)
        if sockets is None:
            self._look_ahead()
        # Before any signal is taken: an import that hangs is interrupted as usual. Inside the loop, since
        # applications ask for it while they are imported.
        self._load()
        with self.capture_signals(), self._hearing_hangups():
            await self._serve(sockets)

    def _look_ahead(self) -> None:
        with self._refusing():
            early_look.look(self.config)

    def _load(self) -> None:
        with self._refusing():
            self.config.be_loaded()

    async def _serve(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        signal_wake.hold(loop)
        try:
            with self._refusing():
                self.lifespan = self.config.lifespan_class(self.config)
            log.process_started(os.getpid())
            await self.startup(sockets=sockets)
            if not self.should_exit:
                await self.main_loop()
            if self.started:
                await self.shutdown(sockets=sockets)
            self._over()
        finally:
            self._abandon()
            signal_wake.let_go(loop)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, listen, let clients in."""
        self._begin()
        with self._refusing():
            self.config.secure()  # who has loaded it may have changed it since
            self.config.is_handed_over = True
            if sockets is not None:
                self._bound = adopt(sockets, backlog=self.config.backlog, secure=self.config.is_ssl)
                forks.register(each.socket for each in self._bound)
            books = self._books = Books(self.config, self._station, self._sheet)
            with books.vigil("startup"):
                is_up = await self._unless_told(self.lifespan.startup())
            if not is_up:
                await self.lifespan.cancel()
                self._close_sockets()
                return
            if sockets is None:
                await self._listen()
            self._tenure = Tenure.of(self._lifetime)
            place = Place(
                bound=self._bound,
                recall=self._recall,
                station=self._station if self._tenure is None else self._tenure.station,
                watched=books.watched,
                own=self._own,
                tasks=await choose(self.config.task_impl),
            )
            self._pidfile = pidfile.write(self.config.pidfile)
            self._worker = Worker(self.config.served_app, self.lifespan, self.config, place)
        groups = [self._bound] if sockets is None else [[each] for each in self._bound]
        self.servers = [Listening(each, self._worker) for each in groups]
        self._keeper = self.config.keeper()
        if sockets is None and self._station is None:  # who made them has said so
            self._log_started_message([each.socket for each in self._bound])
        self.started = True

    async def _listen(self) -> None:
        """Not before the application is up: who may connect takes the server for ready."""
        try:
            self._bound = bind(self.config.addresses(), backlog=self.config.backlog)
        except StartError:
            await self.lifespan.shutdown()
            raise
        forks.register(each.socket for each in self._bound)

    def _log_started_message(self, listeners: Sequence[socket.socket]) -> None:  # noqa: ARG002 - uvicorn's
        log.serving((each.label for each in self._bound), self.calls_itself)

    def _stop(self) -> None:
        self.should_exit = True

    def _over(self) -> None:
        afterwards(self._own, lambda: log.process_finished(os.getpid()))

    async def main_loop(self) -> None:
        """Until the server is to end."""
        self._begin()
        counter = 0
        ticks = self.config.callback_notify is not None or self._is_overridden("should_exit", "on_tick")
        pause = _TICK if ticks else LOOK if self._tenure is not None else None
        while True:
            self._changed.clear()
            if await self.on_tick(counter):
                return
            counter = (counter + 1) % _TICKS
            if self._tenure is not None and (reason := self._tenure.ended_by()):
                self._spend(reason)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), pause)

    def _spend(self, reason: str) -> None:
        """It has served for long enough. Nobody succeeds it: whoever runs it does what comes next."""
        log.logger().warning("The server [%d] %s: it ends.", os.getpid(), reason)
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Whether the server is to end. Called ten times a second where that is of use to somebody."""
        await self._notify(counter)
        return self.should_exit

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests finish, and end the application. Who asks for it meanwhile waits for the same end."""
        await self._end.reach(lambda: self._shut_down(sockets))

    async def _shut_down(self, sockets: list[socket.socket] | None) -> None:
        self._begin()
        log.stopping()
        patience = self._patience()
        end = asyncio.get_running_loop().time() + patience.whole
        if self._own is not None:
            self._own.ends_by(end)
        for each in (*(bound.socket for bound in self._bound), *(sockets or ())):
            # Rust has its own; while ours are open, clients go on being let into the backlog.
            each.close()
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.stop()
        if self._worker is not None:
            if self.force_exit:
                self._worker.hurry()
            await self._worker.end(patience)
            self._settle(self._worker)
        if self.force_exit:
            self.lifespan.abandon()
        else:
            await self._end_lifespan(end)
        self._close_sockets()

    async def _end_lifespan(self, end: float) -> None:
        kept = 0.0 if self._own is None else for_left_tasks(end - asyncio.get_running_loop().time())
        self.lifespan.ends_by(end - kept)
        with nullcontext() if self._books is None else self._books.vigil("shutdown"):
            await self.lifespan.shutdown()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """In the main thread signals end the server; once all of it has ended they are raised again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        taken = Taken(HANDLED_SIGNALS, self.handle_exit)
        try:
            yield
        finally:
            taken.give_back()
        captured, self._captured_signals = self._captured_signals, []
        raise_afterwards(captured, self._own)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - Python hands it over
        """A signal came: the first ends the server, a further SIGINT without waiting."""
        self._captured_signals.append(sig)
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        else:
            self.should_exit = True

    @contextmanager
    def _hearing_hangups(self) -> Generator[None, None, None]:
        """SIGHUP has the certificates read again. In the clear it ends the process, as it does uvicorn's."""
        ours = self.config.credentials is not None and threading.current_thread() is threading.main_thread()
        if not ours or signal.getsignal(signal.SIGHUP) not in (signal.SIG_DFL, signal.SIG_IGN):
            yield
            return
        taken = Taken([signal.SIGHUP], self._handle_hangup)
        try:
            yield
        finally:
            taken.give_back()

    def _handle_hangup(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - Python hands it over
        """The certificates are to be read again."""
        if self._keeper is not None:
            self._call_soon(self._keeper.hurry)

    @contextmanager
    def _refusing(self) -> Generator[None, None, None]:
        """What stops a start is told as it is due here."""
        try:
            yield
        except StartError as problem:
            self._close_sockets()
            self._refuse(problem)
        except Interrupted:
            self._close_sockets()
            raise KeyboardInterrupt from None

    def _refuse(self, problem: StartError) -> NoReturn:
        """The start failed: say why, and exit as uvicorn does."""
        log.outcome(log.ERROR, f"{problem}\n{problem.detail}".rstrip())
        raise SystemExit(EXIT_START_FAILED) from problem

    def _begin(self) -> None:
        """Find out which loop runs: each step may be the first."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._changed = asyncio.Event()
            self._loop = loop

    def _call_soon(self, step: Callable[[], object]) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(step)

    def _look(self) -> None:
        self._changed.set()
        if self.should_exit and self._starting is not None:
            self._starting.cancel()
        if self.force_exit and self._worker is not None:
            self._worker.hurry()

    async def _unless_told(self, startup: Coroutine[Any, Any, None]) -> bool:
        """Run the startup; False if the end came first."""
        if self.should_exit and not self._told_before:
            startup.close()
            return False
        starting = self._starting = asyncio.create_task(startup)
        try:
            await asyncio.wait({starting})
        finally:
            self._starting = None
            starting.cancel()
        if starting.cancelled():
            return False
        starting.result()
        return True

    def _abandon(self) -> None:
        """What is left of a server that could not end in order: a cancelled one may wait for nobody."""
        if self._keeper is not None:
            self._keeper.abandon()
            self._keeper = None
        if self._worker is not None:
            self._worker.kill()
            self._settle(self._worker)
        if hasattr(self, "lifespan"):
            self.lifespan.abandon()
        if self._tenure is not None:
            self._tenure.close()
        self._leave()
        self._close_sockets()

    def _leave(self) -> None:
        file, self._pidfile = self._pidfile, None
        pidfile.remove(file)

    def _close_sockets(self) -> None:
        if self._books is not None:
            self._books.close()
            self._books = None
        for each in self._bound:
            each.close()
        forks.forget(each.socket for each in self._bound)
        self._bound = []

    def _is_overridden(self, *names: str) -> bool:
        """Whether somebody has to be asked, who tells nobody of a change."""
        return any(key in vars(self) or getattr(type(self), key) is not vars(Server)[key] for key in names)
