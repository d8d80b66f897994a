"""One worker: load, bind, start, serve until told to stop, and end in order.

Not how requests are answered (Rust and `asgi.py`) and not how signals are caught (Rust's control thread).

Invariant: whatever happens, what was started is ended in the opposite order, and each wait has its deadline.
"""

import asyncio
import contextvars
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bridgehead import forks, log
from bridgehead._native import Control, Server
from bridgehead.asgi import Application, answer, complain
from bridgehead.config import Config
from bridgehead.errors import StartError
from bridgehead.lifespan import Deadlines, Lifespan
from bridgehead.load_app import load
from bridgehead.sockets import Bound, bind
from bridgehead.task_trial import Chosen, choose

if TYPE_CHECKING:
    from bridgehead.selector import FusedSelector

_FIRST_REQUEST = 15.0  # seconds, at least: the keep-alive time is for the next ones
_CANCELLING = 2.0  # seconds for `finally` blocks, once requests are cancelled
_CLOSING = 0.5  # of these, for whoever waits in `send()` once the connections are closed
_SHARE = 0.7  # of a short shutdown, what requests get at least
_LEFT_TASKS = 1.0  # seconds for tasks that the application left running
_MARGIN = 3.0  # seconds after which a shutdown that should be over is ended from outside the loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the server calls, and where it runs; read by Rust."""

    application: Application
    answer: Callable[..., Coroutine[Any, Any, None]]
    finished: Callable[[], object]
    complain: Callable[[str], object]
    event_loop: asyncio.AbstractEventLoop
    context: contextvars.Context
    shutdown: dict[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the network needs to know; read by Rust."""

    listeners: tuple[tuple[int, bool], ...]
    root_path: str
    state: dict[str, Any]
    pathsend: bool
    first_request: float
    keep_alive: float
    date_header: bool
    default_headers: tuple[tuple[bytes, bytes], ...]
    access_log: int | None
    access_colours: bool
    runtime: int | str
    request_task: Chosen | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """A shutdown's time: requests first, then cancelling, then the lifespan."""

    requests: float
    cancelling: float
    lifespan: float

    @classmethod
    def of(cls, config: Config) -> "Patience":
        """25 s are 18, 2 and 5; a short time is mostly the requests'."""
        whole, lifespan = config.timeout_graceful_shutdown, config.timeout_lifespan_shutdown
        requests = max(whole - _CANCELLING - lifespan, whole * _SHARE)
        return cls(requests=requests, cancelling=_CANCELLING, lifespan=lifespan)

    @property
    def whole(self) -> float:
        """After this the loop must be held by something."""
        return self.requests + self.cancelling + self.lifespan + _MARGIN


def run(config: Config) -> int:
    """Serve until told to stop; the exit code."""
    return _in_a_loop(config, lambda loop, selector: _Worker(config, loop, selector).serve())


def check(config: Config) -> int:
    """Load the application as `run` does, and nothing more; the exit code."""

    async def load_it() -> int:
        name = load(config.app, factory=config.factory, app_dir=config.app_dir).name
        log.logger().info("%s loads, and the settings are valid.", name)
        return 0

    return _in_a_loop(config, lambda *_: load_it())


def _in_a_loop(
    config: Config,
    work: Callable[[asyncio.AbstractEventLoop, "FusedSelector | None"], Coroutine[Any, Any, int]],
) -> int:
    loop, selector = _new_loop(config)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(work(loop, selector))
    finally:
        _close(loop)


class _Worker:
    def __init__(
        self, config: Config, loop: asyncio.AbstractEventLoop, selector: "FusedSelector | None"
    ) -> None:
        self._config = config
        self._selector = selector
        self._loop = loop
        self._patience = Patience.of(config)
        self._stop = asyncio.Event()
        self._over = asyncio.Event()

    async def serve(self) -> int:
        # Before binding: a mistake in the application is worth more to its author than a taken port. Inside
        # the loop, since applications ask for it while they are imported.
        loaded = load(self._config.app, factory=self._config.factory, app_dir=self._config.app_dir)
        bound = bind(self._config.addresses(), backlog=self._config.backlog)
        try:
            await self._serve(loaded.application, bound)
        finally:
            for each in bound:
                each.close()
        return 0

    async def _serve(self, application: Application, bound: list[Bound]) -> None:
        log.process_started(os.getpid())
        # Not closed when serving ends: a thread that the application left behind may hold the exit, and a
        # second signal has to work until then.
        control = Control(self._loop, self._told, self._patience.whole)
        forks.register(each.socket for each in bound)
        try:
            await self._live(application, bound, control)
        finally:
            control.detach()
        log.process_finished(os.getpid())

    async def _live(self, application: Application, bound: list[Bound], control: Control) -> None:
        """From the application's startup to its shutdown."""
        config, context = self._config, contextvars.copy_context()
        deadlines = Deadlines(startup=config.timeout_lifespan_startup, shutdown=self._patience.lifespan)
        lifespan = Lifespan(application, config.lifespan, deadlines, context)
        if await self._unless_told(lifespan.startup()):
            control.rearm()
            tasks = await choose(config.task_impl)
            server = Server(self._host(application, context), self._options(bound, lifespan, tasks))
            for each in bound:
                # Rust has its own; while ours were open, clients would go on being let into the backlog.
                each.socket.close()
            if self._selector is not None:
                self._selector.attach(self._loop, server.turner)
            if server.fallback is not None:
                reason = "The network has a thread of its own, since it cannot be turned under uvloop: %s."
                log.logger().warning(reason, server.fallback)
            log.serving(each.label for each in bound)
            await self._stop.wait()
            await self._end(server)
        await lifespan.shutdown()

    async def _unless_told(self, startup: Coroutine[Any, Any, None]) -> bool:
        """Run the startup; False if the end came first."""
        starting, told = self._loop.create_task(startup), self._loop.create_task(self._stop.wait())
        await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if not starting.done():
            starting.cancel()
            with suppress(asyncio.CancelledError):
                await starting
            return False
        starting.result()
        return True

    async def _end(self, server: Server) -> None:
        """Let requests finish, then cancel them, then close what is left."""
        log.stopping()
        server.drain()
        if not await self._is_over(self._patience.requests):
            if cancelled := server.cancel():
                log.logger().warning("Cancelled %d running requests: the shutdown's time is over.", cancelled)
                await self._is_over(self._patience.cancelling - _CLOSING)
            server.abort()
            if not await self._is_over(_CLOSING):
                log.logger().error("%d requests did not end when cancelled.", server.running)
        if self._selector is not None:
            self._selector.detach(self._loop)
        server.close()

    async def _is_over(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)
        return self._over.is_set()

    def _told(self, number: int) -> None:
        log.logger().debug("Received %s.", signal.Signals(number).name)
        self._stop.set()

    def _host(self, application: Application, context: contextvars.Context) -> Host:
        return Host(
            application=application,
            answer=answer,
            finished=self._over.set,
            complain=complain,
            event_loop=self._loop,
            context=context,
            shutdown={"wait": self._stop.wait, "is_set": self._stop.is_set},
        )

    def _runtime(self) -> int | str:
        """Who turns the network; Rust knows these words."""
        if self._selector is not None:
            return self._selector.fileno()
        return "nested" if self._config.runtime == "fused" else "threaded"

    def _options(self, bound: list[Bound], lifespan: Lifespan, tasks: Chosen | None) -> Options:
        config = self._config
        headers = config.headers
        if config.server_header and not any(name == b"server" for name, _ in headers):
            headers = ((b"server", b"bridgehead"), *headers)
        wants_log = config.access_log and log.logger().isEnabledFor(log.INFO)
        terminal = sys.stdout is not None and sys.stdout.isatty()
        return Options(
            listeners=tuple((each.socket.fileno(), not each.inherited) for each in bound),
            root_path=config.root_path,
            state=lifespan.state,
            pathsend=config.pathsend,
            first_request=max(config.timeout_keep_alive, _FIRST_REQUEST),
            keep_alive=config.timeout_keep_alive,
            date_header=config.date_header,
            default_headers=headers,
            request_task=tasks,
            runtime=self._runtime(),
            access_log=1 if wants_log else None,
            access_colours=terminal if config.use_colors is None else config.use_colors,
        )


def _new_loop(config: Config) -> "tuple[asyncio.AbstractEventLoop, FusedSelector | None]":
    """The loop that was asked for; with its selector, if the fused runtime is that."""
    fused = config.runtime == "fused"
    if fused and sys.platform != "linux":
        raise StartError("the fused runtime needs Linux", "use --runtime threaded")
    if config.loop != "asyncio":
        try:
            import uvloop
        except ImportError:
            if config.loop == "uvloop":
                raise StartError(
                    "uvloop is not installed", "try `pip install uvloop`, or --loop auto"
                ) from None
        else:
            return uvloop.new_event_loop(), None
    if not fused:
        return asyncio.new_event_loop(), None
    # Not before: other systems have no epoll.
    from bridgehead.selector import FusedSelector

    selector = FusedSelector()
    return asyncio.SelectorEventLoop(selector), selector


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End what the application left running, as `asyncio.run` does."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_LEFT_TASKS))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
