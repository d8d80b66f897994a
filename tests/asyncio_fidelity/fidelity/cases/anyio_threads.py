"""anyio's threads: there, back, and portals; sniffio."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from fidelity.account import Seen
from fidelity.registry import case
from fidelity.turns import soon

sniffio: Any
try:
    import sniffio
except ImportError:
    # An anyio that does not bring it finds its library by itself.
    sniffio = None

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")


@case()
async def to_a_thread(seen: Seen) -> None:
    here = threading.get_ident()
    seen(await anyio.to_thread.run_sync(lambda: threading.get_ident() != here))
    seen(await anyio.to_thread.run_sync(pow, 2, 10))


@case()
async def the_context_goes_along(seen: Seen) -> None:
    variable.set("handler")
    seen(await anyio.to_thread.run_sync(variable.get), variable.get())


@case()
async def exceptions_come_back(seen: Seen) -> None:
    def fail() -> None:
        raise ValueError("thread")

    try:
        await anyio.to_thread.run_sync(fail)
    except ValueError as error:
        seen(error.args)


@case()
async def a_thread_is_not_abandoned(seen: Seen) -> None:
    gate, started = threading.Event(), threading.Event()

    def work() -> bool:
        started.set()
        return gate.wait(10)

    def cancel() -> None:
        if started.is_set():
            scope.cancel()
            soon(gate.set)
        else:
            soon(cancel)

    soon(cancel)
    with anyio.CancelScope() as scope:
        seen(await anyio.to_thread.run_sync(work))
    seen(scope.cancelled_caught, scope.cancel_called)


@case()
async def a_thread_is_abandoned(seen: Seen) -> None:
    gate = threading.Event()
    with anyio.move_on_after(0.001) as scope:
        await anyio.to_thread.run_sync(gate.wait, abandon_on_cancel=True)
    gate.set()
    seen(scope.cancelled_caught)


@case()
async def a_limiter_of_ones_own(seen: Seen) -> None:
    limiter = anyio.CapacityLimiter(1)
    most = inside = 0

    def work() -> None:
        nonlocal most, inside
        inside += 1
        most = max(most, inside)
        inside -= 1

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(lambda: anyio.to_thread.run_sync(work, limiter=limiter))
    seen(most, anyio.to_thread.current_default_thread_limiter().total_tokens)


@case()
async def a_thread_calls_back(seen: Seen) -> None:
    main = threading.get_ident()

    async def on_the_loop(word: str) -> str:
        await anyio.sleep(0)
        return word if threading.get_ident() == main else "elsewhere"

    def work() -> list[Any]:
        return [
            anyio.from_thread.run(on_the_loop, "async"),
            anyio.from_thread.run_sync(threading.get_ident) == main,
        ]

    seen(await anyio.to_thread.run_sync(work))


@case()
async def a_thread_gets_the_loops_exception(seen: Seen) -> None:
    async def fail() -> None:
        raise ValueError("loop")

    def work() -> object:
        try:
            anyio.from_thread.run(fail)
        except ValueError as error:
            return error.args
        return None

    seen(await anyio.to_thread.run_sync(work))


@case()
async def a_thread_sees_the_cancellation(seen: Seen) -> None:
    started = threading.Event()

    def work() -> str:
        started.set()
        while True:
            try:
                anyio.from_thread.check_cancelled()
            except BaseException as error:
                return type(error).__name__

    async with anyio.create_task_group() as group:

        async def run() -> None:
            with anyio.CancelScope(shield=True):
                pass
            seen(await anyio.to_thread.run_sync(work))

        group.start_soon(run)
        await anyio.to_thread.run_sync(started.wait)
        group.cancel_scope.cancel()


@case()
async def a_portal_of_this_loop(seen: Seen) -> None:
    async def greet(name: str) -> str:
        await anyio.sleep(0)
        return f"hello {name}"

    async with anyio.from_thread.BlockingPortal() as portal:
        seen(await anyio.to_thread.run_sync(portal.call, greet, "portal"))
        future = await anyio.to_thread.run_sync(portal.start_task_soon, greet, "task")
        wrapped: asyncio.Future[str] = asyncio.wrap_future(future)
        seen(await wrapped)


@case()
async def a_portal_cancels_what_it_started(seen: Seen) -> None:
    over = anyio.Event()

    async def wait() -> None:
        try:
            await anyio.sleep(60)
        finally:
            over.set()

    async with anyio.from_thread.BlockingPortal() as portal:
        future = await anyio.to_thread.run_sync(portal.start_task_soon, wait)
        await anyio.sleep(0.01)
        seen(await anyio.to_thread.run_sync(future.cancel))
        await over.wait()


@case()
async def a_portal_with_a_loop_of_its_own(seen: Seen) -> None:
    def work() -> str:
        with anyio.from_thread.start_blocking_portal() as portal:
            return portal.call(name)

    async def name() -> str:
        await anyio.sleep(0)
        return "another loop" if asyncio.get_running_loop() is not loop else "this loop"

    loop = asyncio.get_running_loop()
    seen(await asyncio.to_thread(work))


@case()
async def sniffio_knows_the_library(seen: Seen) -> None:
    seen(getattr(sniffio, "__name__", "not installed"))
    seen(sniff_in_a_thread())
    await asyncio.sleep(0)
    seen(sniff_in_a_thread())
    seen(await asyncio.create_task(sniff()), await anyio.to_thread.run_sync(sniff_in_a_thread))
    over = asyncio.Event()
    asyncio.get_running_loop().call_soon(lambda: seen(sniff_in_a_thread()))
    asyncio.get_running_loop().call_soon(over.set)
    await over.wait()


async def sniff() -> str:
    return sniff_in_a_thread()


def sniff_in_a_thread() -> str:
    if sniffio is None:
        return "not asked"
    try:
        return str(sniffio.current_async_library())
    except sniffio.AsyncLibraryNotFoundError:
        return "none"


@case()
async def anyio_knows_the_library(seen: Seen) -> None:
    """Whether by sniffio or by itself."""

    async def look() -> None:
        seen(anyio.current_time() == 0, anyio.get_current_task().id == id(asyncio.current_task()))

    await look()
    await anyio.sleep(0)
    await look()
    async with anyio.create_task_group() as group:
        group.start_soon(look)
    await asyncio.create_task(look())
    over = asyncio.Event()

    def outside() -> None:
        try:
            seen(anyio.get_current_task().id)
        except Exception as error:
            seen(type(error))
        over.set()

    asyncio.get_running_loop().call_soon(outside)
    await over.wait()
