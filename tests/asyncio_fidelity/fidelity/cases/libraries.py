"""asgiref's ways between threads and the loop; aiohttp's client, whose timeouts cancel who calls."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import aiohttp
from asgiref.local import Local
from asgiref.sync import async_to_sync, sync_to_async

from fidelity.account import Seen
from fidelity.cases.clients import serving
from fidelity.registry import case
from fidelity.turns import soon

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")


@case()
async def asgiref_to_a_thread(seen: Seen) -> None:
    here = threading.get_ident()

    def work(value: str) -> str:
        seen(threading.get_ident() == here, variable.get())
        variable.set("thread")
        return value

    variable.set("case")
    for sensitive in (True, False):
        seen(await sync_to_async(work, thread_sensitive=sensitive)("worked"), variable.get())


@case()
async def asgiref_to_a_thread_and_back(seen: Seen) -> None:
    here, task = threading.get_ident(), asyncio.current_task()

    async def back(value: str) -> str:
        seen(threading.get_ident() == here, asyncio.current_task() is task, variable.get())
        await asyncio.sleep(0)
        variable.set("back")
        return value

    def work() -> str:
        variable.set("thread")
        return f"{async_to_sync(back)('went')} {variable.get()}"

    seen(await sync_to_async(work)(), variable.get())


@case()
async def asgiref_refuses_to_block_the_loop(seen: Seen) -> None:
    try:
        async_to_sync(asyncio.sleep)(0)
    except RuntimeError as error:
        seen(error.args)


@case()
async def asgiref_brings_exceptions_back(seen: Seen) -> None:
    def fail() -> None:
        raise ValueError("thread")

    async def fail_here() -> None:
        await asyncio.sleep(0)
        raise ValueError("loop")

    for function in (fail, async_to_sync(fail_here)):
        try:
            await sync_to_async(function)()
        except ValueError as error:
            seen(error.args)


@case()
async def asgiref_has_locals_of_the_task(seen: Seen) -> None:
    local = Local()
    local.value = "case"

    async def child() -> None:
        seen(getattr(local, "value", "nothing"))
        local.value = "child"

    await asyncio.create_task(child())
    seen(local.value, await sync_to_async(lambda: local.value)())


@case()
async def aiohttp_calls(seen: Seen) -> None:
    async with serving() as url, aiohttp.ClientSession() as session:

        async def call(path: str) -> tuple[int, str]:
            async with session.get(url + path) as answer:
                return answer.status, await answer.text()

        seen(await call("/one"), await call("/chunks"))
        seen(await asyncio.gather(*(call(f"/{number}") for number in range(8))))


@case()
async def aiohttp_times_out(seen: Seen) -> None:
    task: Any = asyncio.current_task()
    async with serving() as url, aiohttp.ClientSession() as session:
        try:
            async with session.get(f"{url}/slow", timeout=aiohttp.ClientTimeout(total=0.05)):
                seen("answered")
        except TimeoutError as error:
            seen(type(error), task.cancelling())
        await asyncio.sleep(0)
        seen("goes on")


@case()
async def aiohttp_is_cancelled(seen: Seen) -> None:
    task: Any = asyncio.current_task()
    async with serving() as url, aiohttp.ClientSession() as session:
        soon(task.cancel, "stop")
        try:
            async with session.get(f"{url}/slow"):
                seen("answered")
        except asyncio.CancelledError as error:
            seen(error.args, task.uncancel())
        async with session.get(f"{url}/after") as answer:
            seen(await answer.text())
