"""One worker: the network of a server on a running loop, from its first client to its last.

Not how requests are answered (Rust and `asgi.py`), and not when it begins and ends: `server.py` says.

Invariant: whatever holds a request, each wait for it has its deadline, and in the end the network is closed.
"""

import asyncio
import contextvars
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bridgehead import compress_options, log, reports, trace
from bridgehead._native import Server as Network
from bridgehead._native import Sheet, Tls
from bridgehead.access_lines import AccessLines
from bridgehead.asgi import Application, answer, answer_by_name
from bridgehead.bounds import Bounds
from bridgehead.compress_options import Compression
from bridgehead.diagnostics import Watched
from bridgehead.errors import StartError
from bridgehead.forwarded import Forwarding, Trusted, trusted
from bridgehead.lifespan import Lifespan
from bridgehead.loop_trial import tasks_register
from bridgehead.loops import OwnLoop
from bridgehead.open_files import connections_that_fit
from bridgehead.patience import Patience
from bridgehead.private_names import Register
from bridgehead.reasons import REASONS
from bridgehead.reentrant import watch
from bridgehead.reports import Logs
from bridgehead.route import route_of
from bridgehead.server_config import Config
from bridgehead.slow_steps import Files, files
from bridgehead.sockets import Bound, Kind
from bridgehead.static_files import StaticFiles
from bridgehead.station import Station
from bridgehead.task_trial import Chosen, unless_made_by_others
from bridgehead.websocket_options import WebSocketOptions

if TYPE_CHECKING:
    from bridgehead.selector import FusedSelector, Polled
    from bridgehead.spans import Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the server calls, and where it runs; read by Rust."""

    application: Application
    answer: Callable[..., Coroutine[Any, Any, None]]
    finished: Callable[[], object]
    complain: Callable[[str, log.Names | None], object]
    route: Callable[[Mapping[str, Any]], str | None]
    census: Callable[[], tuple[int, tuple[int, int, int] | None]]
    place: Callable[[], tuple[str, str]]
    whose: Callable[[dict[str, Any] | asyncio.Task[Any] | None], tuple[str, str]]
    slow: Callable[[float, str, tuple[str, str] | None, bool, str | None], tuple[str, str]]
    over: Callable[[float, str, tuple[str, str]], object]
    files: Files
    trace: Callable[[str], object] | None
    watch: Callable[[asyncio.AbstractEventLoop, int, Callable[[], object]], None]
    event_loop: asyncio.AbstractEventLoop
    context: contextvars.Context
    shutdown: dict[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the network needs to know; read by Rust."""

    listeners: tuple[tuple[int, bool, bool], ...]
    tls: Tls | None
    redirect: int | None
    recall: int | None
    rota: Station | None
    sheet: Sheet
    slow_step: float | None
    measures: bool
    spans: "Spans | None"
    health_path: str | None
    root_path: str
    state: dict[str, Any]
    pathsend: bool
    static_files: StaticFiles | None
    compression: Compression | None
    keep_alive: float
    bounds: Bounds
    http2: bool
    connections: int | None
    http1_early_hints: bool
    date_header: bool
    default_headers: tuple[tuple[bytes, bytes], ...]
    reasons: tuple[tuple[int, str], ...]
    logs: Logs
    forwarding: Forwarding | None
    proxy_protocol: Trusted | None
    websockets: WebSocketOptions | None
    runtime: "Polled | str"
    tasks_register: Register | None
    request_task: Chosen | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a worker listens, the loop it may turn (None: it is not ours), the tasks of its requests.

    `recall` is the descriptor by which whoever lent the sockets calls them back.
    """

    bound: Sequence[Bound]
    recall: int | None
    station: Station | None
    watched: Watched
    own: OwnLoop | None
    tasks: Chosen | None


class _Waiting:
    """For the last request, or for who has no time. Rust holds this, so it must not hold the network."""

    def __init__(self) -> None:
        self.over = False
        self.closed = asyncio.Event()
        self.hurried = False
        self._changed = asyncio.Event()

    def finish(self) -> None:
        self.over = True
        self.closed.set()
        self._changed.set()

    def hurry(self) -> None:
        self.hurried = True
        self._changed.set()

    async def is_over(self, seconds: float, *, hurries: bool = False) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.over and not (hurries and self.hurried):
                    await self._changed.wait()
                    self._changed.clear()
        return self.over


class Worker:
    """Serves an application on the running loop, from the moment it is made."""

    def __init__(self, application: Application, lifespan: Lifespan, config: Config, place: Place) -> None:
        self._loop = asyncio.get_running_loop()
        self._selector: FusedSelector | None = None
        self._requests = _Waiting()
        self._ending = asyncio.Event()
        context = contextvars.Context() if config.reset_contextvars else lifespan.context
        self._watched = place.watched
        self._bound = tuple(place.bound)
        place = replace(place, tasks=unless_made_by_others(self._loop, place.tasks))
        host = self._host(application, context, ours=place.tasks is not None)
        self._network = Network(host, self._options(config, lifespan.state, place))
        self._lines = AccessLines(config, self._network.turn_lines)
        self._watched.serve(self._network)
        if place.own is not None and place.own.selector is not None and self._network.turner is not None:
            self._selector = place.own.selector
            self._selector.attach(self._loop, self._network.turner)
        if self._network.fallback is not None:
            reason = "The network has a thread of its own, since it cannot be turned under uvloop: %s."
            log.logger().warning(reason, self._network.fallback)
        elif config.runtime == "fused" and not (place.own is not None and place.own.fused):
            log.logger().warning(
                "runtime is fused, but a loop that is not Bridgehead's own is left alone: the network has a "
                "thread of its own."
            )

    @property
    def running(self) -> int:
        """How many requests have not returned yet."""
        return self._network.running

    @property
    def begun(self) -> int:
        """How many requests the application has had."""
        return self._network.begun

    def counts(self) -> dict[str, int]:
        """How often clients were refused, cut off or kept waiting, by reason. Also when all is over."""
        return self._network.counts

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop it serves on."""
        return self._loop

    async def wait_closed(self) -> None:
        """Until the last connection is closed."""
        await self._requests.closed.wait()

    def shut(self, bound: Sequence[Bound]) -> None:
        """Let nobody in any more at these sockets of it but those who wait; connections go on."""
        for number, each in enumerate(self._bound):
            if each in bound:
                self._network.shut(number)

    def drain(self) -> None:
        """Let nobody in any more but those who wait, and close who is idle."""
        self._ending.set()
        self._network.drain()

    def hurry(self) -> None:
        """Wait no longer for requests."""
        self._requests.hurry()

    async def end(self, patience: Patience) -> None:
        """Serve on for the delay, let requests finish, then cancel them, then close what is left."""
        if patience.delay > 0.0:
            self._ending.set()
            self._network.last_call()
            (log.last_call if patience.lets_in else log.last_answers)(patience.delay)
            await self._requests.is_over(patience.delay, hurries=True)
        self.drain()
        if not await self._requests.is_over(patience.requests, hurries=True):
            if cancelled := self._network.cancel():
                reason = "the exit was forced" if self._requests.hurried else "the shutdown's time is over"
                log.logger().warning("Cancelled %s that ran: %s.", _requests(cancelled), reason)
                await self._requests.is_over(patience.cancelling - patience.closing)
            self._network.abort()
            if not await self._requests.is_over(patience.closing):
                log.logger().error("%s", self._lasting())
        self._close()

    def _lasting(self) -> str:
        if self.running:
            return f"{_requests(self.running)} did not end when cancelled."
        return "The network did not end though its connections were closed; it is left behind."

    def kill(self) -> None:
        """End at once, for who may not wait: requests are cancelled, connections cut."""
        self._ending.set()
        self._network.cancel()
        self._network.abort()
        self._close()

    def _close(self) -> None:
        if self._selector is not None:
            self._selector.detach(self._loop)
        self._lines.leave()
        self._watched.rest()
        self._network.close()
        log.counted(self._network.counts)
        self._requests.closed.set()

    def _host(self, application: Application, context: contextvars.Context, *, ours: bool) -> Host:
        return Host(
            application=application,
            answer=answer_by_name if self._loop.get_debug() else answer,
            finished=self._requests.finish,
            complain=log.misbehaviour,
            route=route_of,
            census=self._watched.count,
            place=self._watched.steps.place,
            whose=self._watched.steps.whose,
            slow=self._watched.steps.tell,
            over=self._watched.steps.over,
            files=files(),
            trace=trace.drives(os.environ, ours=ours),
            watch=watch,
            event_loop=self._loop,
            context=context,
            shutdown={"wait": self._ending.wait, "is_set": self._ending.is_set},
        )

    def _options(self, config: Config, state: dict[str, Any], place: Place) -> Options:
        return Options(
            listeners=tuple((each.socket.fileno(), not each.inherited, each.secure) for each in place.bound),
            tls=config.credentials.tls if config.credentials is not None else None,
            redirect=_secure_port(place.bound) if config.redirect_https else None,
            recall=place.recall,
            rota=place.station,
            sheet=place.watched.sheet,
            slow_step=config.slow_step or None,
            # Whether clients are welcome is judged by what is measured.
            measures=config.admin is not None or config.health_path is not None,
            spans=_spans(config),
            health_path=config.health_path,
            root_path=config.root_path,
            state=state,
            pathsend=config.pathsend,
            static_files=config.static_files,
            compression=compress_options.wanted(config),
            keep_alive=config.timeout_keep_alive,
            bounds=config,
            http2=config.http2,
            connections=_connections(config),
            http1_early_hints=config.http1_early_hints,
            date_header=config.date_header,
            default_headers=tuple(config.encoded_headers),
            reasons=REASONS,
            runtime=_runtime(place),
            tasks_register=tasks_register(),
            request_task=place.tasks,
            logs=reports.wanted(config),
            forwarding=_forwarding(config) if config.proxy_headers else None,
            proxy_protocol=trusted(config.proxy_protocol_allow_ips) if config.proxy_protocol else None,
            # WSGI knows nothing of them.
            websockets=None if config.ws == "none" or config.interface == "wsgi" else config,
        )


def _spans(config: Config) -> "Spans | None":
    if not config.otel:
        return None
    from bridgehead import spans

    return spans.wanted(os.environ)


def _forwarding(config: Config) -> Forwarding:
    headers = frozenset(config.forwarded_headers.split(","))
    return Forwarding(proxies=trusted(config.forwarded_allow_ips), headers=headers)


def _secure_port(bound: Sequence[Bound]) -> int:
    """Where who comes in the clear is sent to."""
    for each in bound:
        if each.secure and each.kind is Kind.TCP:
            return int(each.socket.getsockname()[1])
    raise StartError("--redirect-https: there is no port to send clients to", "let one of --bind be of TCP")


def _connections(config: Config) -> int | None:
    """How many there may be; None is any number."""
    wanted = config.limit_connections
    return connections_that_fit() if wanted is None else wanted or None


def _runtime(place: Place) -> "Polled | str":
    """Who turns the network; Rust knows these words. A loop that is not ours is left alone."""
    if place.own is None:
        return "threaded"
    if place.own.selector is not None:
        return place.own.selector.polled() or "threaded"
    return "nested" if place.own.fused else "threaded"


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"
