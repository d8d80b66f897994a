"""Executors, `to_thread`, and what threads do to the loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading

from fidelity.account import Seen
from fidelity.registry import case
from fidelity.turns import soon

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")


def task() -> asyncio.Task[object]:
    current = asyncio.current_task()
    assert current is not None
    return current


@case()
async def the_default_executor(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    here = threading.get_ident()
    seen(await loop.run_in_executor(None, lambda: threading.get_ident() != here))
    seen(await loop.run_in_executor(None, pow, 2, 10), threading.get_ident() == here)


@case()
async def an_executor_of_ones_own(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        seen(await asyncio.gather(*(loop.run_in_executor(executor, pow, 2, number) for number in range(5))))


@case()
async def to_thread_takes_the_context_along(seen: Seen) -> None:
    variable.set("handler")

    def change() -> str:
        before = variable.get()
        variable.set("thread")
        return before

    seen(await asyncio.to_thread(change), variable.get())


@case()
async def an_executor_does_not_take_the_context_along(seen: Seen) -> None:
    variable.set("handler")
    seen(await asyncio.get_running_loop().run_in_executor(None, variable.get))


@case()
async def exceptions_come_out_of_threads(seen: Seen) -> None:
    def fail(error: BaseException) -> None:
        raise error

    for error in (ValueError("thread"), OSError(2, "no such"), ExceptionGroup("two", [KeyError(1)])):
        try:
            await asyncio.to_thread(fail, error)
        except Exception as caught:
            seen(caught is error, caught.args)


@case(alone=True)
async def a_stop_iteration_comes_out_of_a_thread(seen: Seen) -> None:
    """Older Pythons report it, and never wake who waits."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: seen(context["exception"]))

    def stop() -> None:
        raise StopIteration("thread")

    try:
        await asyncio.wait_for(asyncio.to_thread(stop), 0.1)
    except BaseException as error:
        seen(type(error), [str(each) for each in (error, error.__cause__)])
    loop.set_exception_handler(None)


@case()
async def a_thread_has_no_loop(seen: Seen) -> None:
    def look() -> list[object]:
        found: list[object] = []
        for look in (asyncio.get_running_loop, asyncio.current_task):
            try:
                found.append(look())
            except RuntimeError as error:
                found.append(error)
        return found

    seen(await asyncio.to_thread(look))


@case()
async def a_cancelled_wait_for_a_thread(seen: Seen) -> None:
    gate = threading.Event()
    asyncio.get_running_loop().call_soon(task().cancel, "thread")
    try:
        await asyncio.to_thread(gate.wait)
    except asyncio.CancelledError as error:
        seen(error.args, task().uncancel())
    finally:
        gate.set()


@case()
async def call_soon_threadsafe_wakes_the_loop(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str] = loop.create_future()
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(future.set_result, "woken"))
    thread.start()
    seen(await future)
    thread.join()


@case()
async def a_thread_runs_a_coroutine_on_the_loop(seen: Seen) -> None:
    loop = asyncio.get_running_loop()

    async def work() -> str:
        await asyncio.sleep(0)
        return "on the loop" if threading.current_thread() is thread else "elsewhere"

    def ask() -> str:
        return asyncio.run_coroutine_threadsafe(work(), loop).result(10)

    thread = threading.current_thread()
    seen(await asyncio.to_thread(ask))


@case()
async def a_thread_gets_the_exception_of_a_coroutine(seen: Seen) -> None:
    loop = asyncio.get_running_loop()

    async def fail() -> None:
        raise ValueError("coroutine")

    def ask() -> object:
        try:
            return asyncio.run_coroutine_threadsafe(fail(), loop).result(10)
        except ValueError as error:
            return str(error)

    seen(await asyncio.to_thread(ask))


@case()
async def a_thread_cancels_its_coroutine(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    started = threading.Event()
    over = asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            over.set()

    def ask() -> bool:
        future = asyncio.run_coroutine_threadsafe(wait(), loop)
        started.wait(10)
        return future.cancel()

    seen(await asyncio.to_thread(ask))
    await over.wait()


@case()
async def wrap_future(seen: Seen) -> None:
    theirs: concurrent.futures.Future[str] = concurrent.futures.Future()
    soon(theirs.set_result, "wrapped")
    wrapped: asyncio.Future[str] = asyncio.wrap_future(theirs)
    seen(await wrapped)
    cancelled: concurrent.futures.Future[str] = concurrent.futures.Future()
    asyncio.get_running_loop().call_soon(cancelled.cancel)
    try:
        await asyncio.wrap_future(cancelled)
    except asyncio.CancelledError:
        seen("cancelled")


@case()
async def many_threads_at_once(seen: Seen) -> None:
    seen(sum(await asyncio.gather(*(asyncio.to_thread(pow, number, 2) for number in range(40)))))


@case()
async def a_thread_has_a_loop_of_its_own(seen: Seen) -> None:
    async def inner() -> str:
        await asyncio.sleep(0.001)
        async with asyncio.timeout(5):
            return f"{asyncio.current_task() is not outer}"

    outer = task()
    seen(await asyncio.to_thread(lambda: asyncio.run(inner())))
    seen(asyncio.current_task() is outer)


@case()
async def a_thread_uses_a_lock_of_the_loop(seen: Seen) -> None:
    """Not allowed, but what comes of it is the same."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def look() -> object:
        return future.done(), future.get_loop() is loop

    seen(await asyncio.to_thread(look))
    future.cancel()
