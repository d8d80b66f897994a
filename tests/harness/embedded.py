"""A server that runs in the tests' own process, on a thread of its own.

Not the process under test: that is `Server`. This is how programs embed one.
Invariant: leaving the `with` block ends the server, and an error of its thread is the test's.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self

import bridgehead
from harness.client import Client, Response, request
from harness.server import LOOPS, STARTUP_SECONDS, STOP_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import TracebackType


def settings_of(loop: str) -> dict[str, Any]:
    """The options for what the `loop` fixture names."""
    name, runtime = LOOPS.get(loop, (loop, "auto"))
    return {"loop": name, "runtime": runtime}


def server_of(app: Any, loop: str = "asyncio", **options: Any) -> bridgehead.Server:
    """A server on a port of its own that says nothing unless something is wrong."""
    usual: dict[str, Any] = {"port": 0, "log_level": "warning"}
    return bridgehead.Server(bridgehead.Config(app, **usual | settings_of(loop) | options))


def port_of(server: bridgehead.Server) -> int:
    port: int = server.servers[0].sockets[0].getsockname()[1]
    return port


def ask(port: int, target: str = "/", method: str = "GET", body: bytes = b"") -> Response:
    """One request on a connection of its own."""
    with Client(("127.0.0.1", port)) as client:
        client.send(request(target, method=method, body=body, headers=[("Connection", "close")]))
        return client.read_response(method=method)


def wait_until(condition: Any, what: str, seconds: float = STARTUP_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not after {seconds} s"
        time.sleep(0.005)


async def asked(port: int, target: str = "/", **more: Any) -> bytes:
    """What `ask` gives, for tests that run a loop."""
    return (await asyncio.to_thread(ask, port, target, **more)).body


@asynccontextmanager
async def served(server: bridgehead.Server) -> AsyncIterator[asyncio.Task[None]]:
    """The server in a task, as most programs have it; ended by `should_exit`."""
    task = asyncio.create_task(server.serve())
    await until_started(server, task)
    try:
        yield task
    finally:
        server.should_exit = True
        await task


async def until_started(server: bridgehead.Server, task: asyncio.Task[None]) -> None:
    while not server.started:
        assert not task.done(), task.exception()
        await asyncio.sleep(0.001)


@contextmanager
def heard() -> Iterator[list[str]]:
    """What the server's loggers say; pytest hears the root logger alone, and ours tell that nothing."""

    lines: list[str] = []

    class Hearing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    hearing = Hearing()
    logging.getLogger("bridgehead").addHandler(hearing)
    try:
        yield lines
    finally:
        logging.getLogger("bridgehead").removeHandler(hearing)


class InThread:
    """`with InThread(server) as running: running.ask("/")`, as gradio, fixtures and notebooks do it."""

    def __init__(self, server: bridgehead.Server, **arguments: Any) -> None:
        self.server = server
        self._error: BaseException | None = None
        self._arguments = arguments
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.server.run(**self._arguments)
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.server.started or not self._thread.is_alive(), "the server starts")
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.should_exit = True
        self.join()

    def join(self) -> None:
        self._thread.join(STOP_SECONDS)
        assert not self._thread.is_alive(), "the server did not end"
        if self._error is not None:
            raise self._error

    @property
    def port(self) -> int:
        return port_of(self.server)

    def ask(self, target: str = "/", **more: Any) -> Response:
        return ask(self.port, target, **more)

    def connect(self) -> Client:
        return Client(("127.0.0.1", self.port))
