"""Runs asynchronous tests in the handlers of requests: `POST /run?LOOP&FILES[&TEST…]`.

pytest is on a thread of its own. What it would hand to a loop of its own it hands to a request, which it
makes of this very server (`POST /session?NUMBER`): each test, and the asynchronous fixtures that are its
own, in the task of one request.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import itertools
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, MutableMapping
from concurrent.futures import Future
from typing import Any
from urllib.parse import unquote

from _pytest.outcomes import OutcomeException
from anyio._backends import _asyncio

from anyio_suites.outcomes import Chosen, Outcomes, run

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# As long as anyio gives a test.
SECONDS = 20
numbers = itertools.count()
sessions: dict[str, Session] = {}


class Session:
    """What one request is to run, from pytest's thread; used on the loop's."""

    def __init__(self, eager: bool) -> None:
        self.eager = eager
        self.calls: asyncio.Queue[tuple[Callable[[], Awaitable[Any]], Future[Any]] | None] = asyncio.Queue()
        self.task: asyncio.Task[Any] | None = None
        self.exceptions: list[BaseException] = []

    async def run(self) -> None:
        """In the handler: one call after another, until there is no more."""
        self.task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        others = asyncio.all_tasks()
        loop.set_exception_handler(self._note)
        if self.eager:
            loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        try:
            while (call := await self.calls.get()) is not None:
                await self._answer(*call)
        finally:
            loop.set_task_factory(None)
            await self._cancel(asyncio.all_tasks() - others)
            loop.set_exception_handler(None)

    async def _answer(self, function: Callable[[], Awaitable[Any]], outcome: Future[Any]) -> None:
        try:
            value = await function()
        except BaseException as error:  # of every kind: pytest's own are among them
            outcome.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            outcome.set_result(value)

    async def _cancel(self, left: set[asyncio.Task[Any]]) -> None:
        """As a runner of asyncio's does with what its tests left."""
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(error := context.get("exception"), Exception):
            self.exceptions.append(error)
        else:
            loop.default_exception_handler(context)


class RequestRunner(_asyncio.TestRunner):
    """anyio's runner of tests, on pytest's thread."""

    loop: asyncio.AbstractEventLoop
    port: int

    def __init__(
        self,
        *,
        debug: bool | None = None,  # noqa: ARG002 - the server's loop is in debug mode
        use_uvloop: bool = False,  # noqa: ARG002 - the server's loop is the one that is wanted
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> None:
        self._eager = getattr(loop_factory, "__name__", "") == "eager_task_loop_factory"
        self._number = ""
        self._client: http.client.HTTPConnection | None = None

    def __enter__(self) -> RequestRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def is_running(self) -> bool:
        return False

    def run_test(self, test_func: Callable[..., Coroutine[Any, Any, Any]], kwargs: dict[str, Any]) -> None:
        exceptions: list[BaseException] = []
        try:
            self._call(test_func, **kwargs)
        except OutcomeException:
            raise
        except Exception as error:
            exceptions.append(error)
        except BaseException:
            self._end()
            raise
        self._raise(exceptions)

    def run_fixture(self, fixture_func: Callable[..., Awaitable[Any]], kwargs: dict[str, Any]) -> Any:
        value = self._call(fixture_func, **kwargs)
        self._raise([])
        return value

    def run_asyncgen_fixture(
        self, fixture_func: Callable[..., AsyncGenerator[Any, Any]], kwargs: dict[str, Any]
    ) -> Iterable[Any]:
        generator = fixture_func(**kwargs)
        value = self._call(generator.asend, None)
        self._raise([])
        yield value
        try:
            self._call(generator.asend, None)
        except StopAsyncIteration:
            self._raise([])
        else:
            self._call(generator.aclose)
            raise RuntimeError("Async generator fixture did not stop")

    def _raise(self, exceptions: list[BaseException]) -> None:
        exceptions = [*sessions[self._number].exceptions, *exceptions]
        sessions[self._number].exceptions = []
        if len(exceptions) == 1:
            raise exceptions[0]
        if exceptions:
            raise BaseExceptionGroup("Multiple exceptions occurred in asynchronous callbacks", exceptions)

    def _call(self, function: Callable[..., Awaitable[Any]], *args: Any, **keywords: Any) -> Any:
        outcome: Future[Any] = Future()
        first = self._client is None
        if first:
            self._number = str(next(numbers))
            sessions[self._number] = Session(self._eager)
        call = (lambda: function(*args, **keywords)), outcome
        self.loop.call_soon_threadsafe(sessions[self._number].calls.put_nowait, call)
        if first:
            self._client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
            self._client.request("POST", f"/session?{self._number}", body=b"x")
        try:
            return outcome.result(SECONDS)
        except TimeoutError:
            if outcome.done():
                raise
            task = sessions[self._number].task
            if task is not None:
                self.loop.call_soon_threadsafe(task.cancel)
            raise RuntimeError("hung") from None

    def _end(self) -> None:
        if self._client is None:
            return
        session = sessions.pop(self._number)
        self.loop.call_soon_threadsafe(session.calls.put_nowait, None)
        self._client.getresponse().read()
        self._client.close()
        self._client = None
        # Where a loop would have ended with its test.
        gc.collect()


def run_here(loop: str, files: str, names: list[str]) -> Outcomes:
    """On pytest's thread."""
    plain, _asyncio.TestRunner = _asyncio.TestRunner, RequestRunner  # type: ignore[misc]
    try:
        return run(files.split(","), Chosen(loop, synchronous=False), names)
    finally:
        _asyncio.TestRunner = plain  # type: ignore[misc]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The application."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    # After a wait for the network, as most of a handler is.
    while (await receive()).get("more_body"):
        pass
    words = [unquote(word) for word in scope["query_string"].decode().split("&")]
    body = b""
    if scope["path"] == "/session":
        await sessions[words[0]].run()
    else:
        RequestRunner.loop, RequestRunner.port = asyncio.get_running_loop(), scope["server"][1]
        body = json.dumps(await asyncio.to_thread(run_here, words[0], words[1], words[2:])).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
