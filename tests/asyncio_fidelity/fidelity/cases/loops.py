"""The running loop: what it is, what it calls, what it says."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import warnings
from typing import Any

from fidelity.account import Seen
from fidelity.registry import case


@case()
async def the_running_loop(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    seen(loop.is_running(), loop.is_closed(), loop.get_debug(), asyncio.get_event_loop() is loop)
    seen(asyncio.events._get_running_loop() is loop, loop.get_task_factory(), loop.get_exception_handler())
    await asyncio.sleep(0)
    seen(asyncio.get_running_loop() is loop, threading.current_thread() is threading.main_thread())


@case()
async def futures_of_the_loop(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    seen(future.get_loop() is loop, repr(future))
    future.set_result(1)
    seen(repr(future), future.result(), future.exception())
    setters: tuple[Any, ...] = (future.set_result, future.set_exception)
    for setter in setters:
        try:
            setter(ValueError("again"))
        except asyncio.InvalidStateError as error:
            seen(error)


@case()
async def the_callbacks_of_a_future(seen: Seen) -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def called(which: asyncio.Future[int]) -> None:
        seen("called", which is future)

    for _ in range(3):
        future.add_done_callback(called)
    seen(future.remove_done_callback(called), future.remove_done_callback(called))
    future.add_done_callback(called)
    future.set_result(1)
    seen("set")
    await asyncio.sleep(0)
    future.add_done_callback(called)
    seen("added late")
    await asyncio.sleep(0)


@case()
async def what_a_waited_for_future_shows(seen: Seen) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def look() -> None:
        seen(len(future._callbacks or ()), future._asyncio_future_blocking)
        future.set_result(None)

    asyncio.get_running_loop().call_soon(look)
    await future


@case()
async def tasks_of_the_loop(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    child = loop.create_task(asyncio.sleep(0, "result"), name="a name")
    seen(child.get_name(), await child, child.result())
    for wrong in (asyncio.sleep, None, 5):
        try:
            seen(loop.create_task(wrong))  # type: ignore[arg-type]
        except TypeError as error:
            seen(error)


@case()
async def a_child_and_its_repr(seen: Seen) -> None:
    async def work() -> None:
        await asyncio.sleep(0.001)

    child = asyncio.create_task(work(), name="child")
    words = [repr(child).partition(" running at")[0]]
    await asyncio.sleep(0)
    words.append(repr(child).partition(" running at")[0])
    await child
    words.append(repr(child).partition(" defined at")[0])
    seen(words)


@case()
async def a_future_the_handler_waits_for_and_its_repr(seen: Seen) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def look() -> None:
        seen(repr(future).partition(" cb=")[0])
        future.set_result(None)

    asyncio.get_running_loop().call_soon(look)
    await future


@case(alone=True)
async def a_signal_handler(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    got = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, got.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await got.wait()
    seen(loop.remove_signal_handler(signal.SIGUSR1), loop.remove_signal_handler(signal.SIGUSR1))


@case(alone=True)
async def an_exception_handler_of_the_applications(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    told: list[Any] = []
    loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    loop.call_exception_handler({"message": "by hand"})
    seen(told, loop.get_exception_handler() is not None)
    loop.set_exception_handler(None)


@case(alone=True)
async def a_coroutine_that_nobody_awaited(seen: Seen) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.sleep(0)  # type: ignore[unused-coroutine]
    seen([str(warning.message) for warning in caught])


@case(alone=True)
async def debug_mode_is_switched_on(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    try:
        await asyncio.sleep(0)
        child = asyncio.create_task(asyncio.sleep(0))
        await child
        async with asyncio.timeout(5):
            await asyncio.sleep(0.001)
        seen(loop.get_debug())
    finally:
        loop.set_debug(False)


@case()
async def handles(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    handle = loop.call_soon(seen, "never")
    handle.cancel()
    seen(handle.cancelled())
    timer = loop.call_later(60, seen, "never")
    seen(timer.when() > loop.time(), timer.cancelled())
    timer.cancel()
    seen(timer.cancelled())
    await asyncio.sleep(0)


@case()
async def many_callbacks_in_one_turn(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    called = 0

    def call() -> None:
        nonlocal called
        called += 1

    for _ in range(1000):
        loop.call_soon(call)
    await asyncio.sleep(0)
    seen(called)


@case()
async def asyncios_runner_in_a_thread(seen: Seen) -> None:
    def run() -> str:
        with asyncio.Runner() as runner:
            return runner.run(asyncio.sleep(0, "ran"))

    seen(await asyncio.to_thread(run))
