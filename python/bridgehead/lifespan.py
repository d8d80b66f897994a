"""The application's lifespan: startup before the first request, shutdown after the last.

Not the rules (Rust judges each message) and not when (`server.py` says).

Invariant: every wait has its deadline, and an application without a lifespan is served like any other.
"""

import asyncio
import contextvars
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bridgehead import log
from bridgehead._native import LifespanRules
from bridgehead.asgi import Application, below, is_cancellation
from bridgehead.errors import Interrupted, StartError, application_traceback

_SCOPE_VERSIONS = {"version": "3.0", "spec_version": "2.0"}
_LAST_STEPS = 0.5  # seconds for the application's call to return once it has said that it is done
_LAST_MOMENT = 0.05  # of these, when the stop's time is over

Message = MutableMapping[str, Any]


class _Phase(Enum):
    """How far the application's side has come."""

    SILENT = "has said nothing yet"
    STARTED = "startup complete"
    REFUSED = "startup failed"
    STOPPED = "shutdown complete"
    BROKEN = "shutdown failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long each half may take, in seconds."""

    startup: float
    shutdown: float


class Lifespan:
    """One application's lifespan, in a task of its own."""

    def __init__(
        self, application: Application, mode: str, deadlines: Deadlines, context: contextvars.Context
    ) -> None:
        self.state: dict[str, Any] = {}
        self.context = context
        self._application = application
        self._mode = mode
        self._deadlines = deadlines
        self._rules = LifespanRules()
        self._phase = _Phase.SILENT
        self._message = ""
        self._error: BaseException | None = None
        self._changed = asyncio.Event()
        self._shutdown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._end: float | None = None

    def ends_by(self, end: float) -> None:
        """The shutdown takes no longer, by the loop's clock, even if its own time is not over."""
        self._end = end

    async def startup(self) -> None:
        """Run the application's startup; `StartError` if it must not be served."""
        if self._mode == "off":
            return
        log.startup_begins()
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._call(), name="bridgehead-lifespan", context=self.context)
        self._task.add_done_callback(lambda _: self._changed.set())
        await self._wait(self._deadlines.startup)
        if self._phase is _Phase.SILENT:
            await self._without_lifespan(self._task)
        elif self._phase is _Phase.REFUSED:
            if self._message:
                log.logger().error("%s", self._message.rstrip())
            await self._leave()
            self._refuse_exit()
            raise StartError("the application's startup failed", "mend what its lifespan reports")
        log.startup_complete()

    async def shutdown(self) -> None:
        """Run the application's shutdown, if it had a startup."""
        if self._task is None or self._phase is not _Phase.STARTED or self._error is not None:
            return
        log.shutdown_begins()
        self._rules.shut_down()
        self._changed.clear()
        self._shutdown.set()
        seconds = self._at_most(self._deadlines.shutdown)
        await self._wait(seconds)
        self._report_shutdown(self._task, seconds)
        await self._leave()
        self._report_end()

    @property
    def is_broken(self) -> bool:
        """Whether the application has said that its shutdown failed."""
        return self._phase is _Phase.BROKEN

    @property
    def has_failed_to_stop(self) -> bool:
        """Whether its shutdown ended without having succeeded: it said so, or raised."""
        unfinished = self._shutdown.is_set() and self._phase is _Phase.STARTED
        return self.is_broken or (unfinished and self._error is not None)

    def abandon(self) -> None:
        """End it without its shutdown, where nobody may wait."""
        if self._task is not None:
            self._task.cancel()

    async def cancel(self) -> None:
        """End a startup that nobody wants any more."""
        self.abandon()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_LAST_STEPS)

    def _at_most(self, seconds: float) -> float:
        if self._end is None:
            return seconds
        return min(seconds, max(self._end - asyncio.get_running_loop().time(), _LAST_MOMENT))

    def _report_shutdown(self, task: asyncio.Task[None], seconds: float) -> None:
        if self._phase is _Phase.STOPPED:
            log.shutdown_complete()
        elif self._phase is _Phase.BROKEN:
            log.logger().error("Application shutdown failed. %s", self._message)
        elif not task.done():
            log.logger().error("Application shutdown took longer than %.3g s.", seconds)
        elif self._error is not None:
            log.logger().error("Application shutdown failed.", exc_info=self._error)

    def _report_end(self) -> None:
        # Who has said that the shutdown failed has told of the error by that.
        if self._phase is _Phase.STOPPED and self._error is not None:
            log.logger().error("The application's lifespan failed after its shutdown.", exc_info=self._error)

    async def _call(self) -> None:
        scope = {"type": "lifespan", "asgi": dict(_SCOPE_VERSIONS), "state": self.state}
        try:
            await self._application(scope, self._receive, self._send)
        except BaseException as error:  # a task would let SystemExit through the loop, past who waits for it
            if is_cancellation(error):
                raise
            self._error = below(error)
            if self._is_serving():
                what = "The application's lifespan failed while it served: there will be no shutdown of it."
                log.logger().error(what, exc_info=self._error)

    def _is_serving(self) -> bool:
        """Whether its call has no reason to end. Asked within the call."""
        task = asyncio.current_task()
        cancelled = task is not None and task.cancelling() > 0
        return self._phase is _Phase.STARTED and not self._shutdown.is_set() and not cancelled

    async def _receive(self) -> Message:
        while (due := self._rules.receive()) is None:
            if self._shutdown.is_set():
                # All has been said: like uvicorn's, a further receive never returns.
                await asyncio.get_running_loop().create_future()
            await self._shutdown.wait()
        return {"type": f"lifespan.{due}"}

    async def _send(self, message: Message) -> None:
        kind, said = self._rules.send(message)
        self._phase = {
            "lifespan.startup.complete": _Phase.STARTED,
            "lifespan.startup.failed": _Phase.REFUSED,
            "lifespan.shutdown.complete": _Phase.STOPPED,
            "lifespan.shutdown.failed": _Phase.BROKEN,
        }[kind]
        self._message = "".join(map(_shown, said))
        self._changed.set()

    async def _wait(self, seconds: float) -> None:
        """Until the application has said something, has ended, or the time is over."""
        assert self._task is not None
        # Without a task of its own: the application may have set a task factory that refuses it.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if not self._task.done():
                    await self._changed.wait()

    async def _without_lifespan(self, task: asyncio.Task[None]) -> None:
        """The application ended, or waited, without a word about its startup."""
        if not task.done():
            await self._leave()
            raise StartError(
                f"the application's startup took longer than {self._deadlines.startup:g} s",
                "give it more by --timeout-lifespan-startup, or see what it waits for",
            )
        self._refuse_exit()
        error = self._error
        if self._mode == "on":
            detail = application_traceback(error) if error else ""
            raise StartError(
                "the application has no working lifespan, and --lifespan on asks for one",
                "use --lifespan auto, or mend the application",
                detail=detail,
            )
        log.logger().info("ASGI 'lifespan' protocol appears unsupported.")
        log.logger().debug("The application's lifespan ended with this.", exc_info=error)

    def _refuse_exit(self) -> None:
        """An application that ends the process while it starts has not failed to have a lifespan."""
        match self._error:
            case KeyboardInterrupt():
                raise Interrupted from None
            case SystemExit(code=code):
                how = f"with code {code or 0}" if isinstance(code, int | None) else f"saying {code}"
                raise StartError(
                    f"the application exited {how} during startup",
                    "see why it does; the traceback above is the application's",
                    detail=application_traceback(self._error),
                )

    async def _leave(self) -> None:
        """Let the application's call end, if it has said that it does; else end it."""
        assert self._task is not None
        if self._phase in (_Phase.STOPPED, _Phase.BROKEN, _Phase.REFUSED):
            await asyncio.wait({self._task}, timeout=self._at_most(_LAST_STEPS))
        if self._task.cancel():
            await asyncio.wait({self._task}, timeout=self._at_most(_LAST_STEPS))


def _shown(letter: str) -> str:
    """A letter of an application's message. A terminal would obey a control character."""
    return letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode()
