"""Handlers for the tests of ASGI's rules: each does one thing and tells what it saw.

Run by itself: `serve asgi_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import json
import logging
import os
import sys
import time
import weakref
from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import unquote

import anyio
import anyio.to_thread
from kit import (
    Message,
    Receive,
    Routes,
    Scope,
    Send,
    answer,
    answer_json,
    end,
    more,
    option,
    read_body,
    start,
)

routes = Routes()
kept: list[asyncio.Task[None]] = []

in_lifespan: contextvars.ContextVar[str] = contextvars.ContextVar("in_lifespan", default="not set")
in_request: contextvars.ContextVar[str] = contextvars.ContextVar("in_request", default="not set")


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The router, with a lifespan that leaves state and a context variable behind."""
    if scope["type"] != "lifespan":
        await routes(scope, receive, send)
        return
    in_lifespan.set("set in lifespan")
    assert (await receive())["type"] == "lifespan.startup"
    scope["state"]["number"] = 1
    scope["state"]["shared"] = []
    await send({"type": "lifespan.startup.complete"})
    assert (await receive())["type"] == "lifespan.shutdown"
    await send({"type": "lifespan.shutdown.complete"})


def describe(error: BaseException) -> dict[str, object]:
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    return {"kind": kinds[0], "kinds": kinds, "says": str(error)}


def plain(value: object) -> object:
    """`value` with its types written out, for JSON."""
    if isinstance(value, bytes):
        return f"bytes:{value.decode('latin-1')}"
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return repr(value)


@routes.at("scope")
async def show_scope(scope: Scope, receive: Receive, send: Send) -> None:
    shown = plain(dict(scope))
    assert isinstance(shown, dict)
    await answer_json(send, {**shown, "is_dict": type(scope) is dict})


@routes.at("offered")
async def note_what_is_offered(scope: Scope, receive: Receive, send: Send) -> None:
    """For HEAD, whose answer shows nothing of it."""
    routes.note(option(scope, "name"), sorted(scope["extensions"]))
    await answer(send, b"noted")


@routes.at("state")
async def change_state(scope: Scope, receive: Receive, send: Send) -> None:
    state = scope["state"]
    before = {"number": state["number"], "shared": list(state["shared"]), "extra": "extra" in state}
    state["number"] += 1
    state["extra"] = True
    state["shared"].append(scope["path"])
    await answer_json(send, before)


@routes.at("messages")
async def send_messages(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends the messages of the request's body, tells which of them raised, then ends the answer itself."""
    messages = eval((await read_body(receive)).decode(), {"memoryview": memoryview, "bytearray": bytearray})
    assert isinstance(messages, list)
    name = option(scope, "name")
    started = False
    for position, message in enumerate(messages):
        try:
            await send(message)
        except Exception as error:
            report = {"position": position, **describe(error)}
            routes.note(name, report)
            if not started:
                await answer_json(send, report)
            else:
                with contextlib.suppress(Exception):
                    await end(send, b"")
            return
        started = started or message["type"] == "http.response.start"
    routes.note(name, {"position": None})


@routes.at("received")
async def show_received(scope: Scope, receive: Receive, send: Send) -> None:
    messages: list[Message] = []
    while not messages or messages[-1].get("more_body"):
        messages.append(await receive())
    await answer_json(send, [plain(dict(message)) for message in messages])


@routes.at("after")
async def receive_after_the_answer(scope: Scope, receive: Receive, send: Send) -> None:
    if option(scope, "read") == "yes":
        await read_body(receive)
    await answer(send, b"answered")
    async with asyncio.timeout(10):
        routes.note(option(scope, "name"), [dict(await receive()) for _ in range(3)])


@routes.at("await-disconnect")
async def wait_for_the_disconnect(scope: Scope, receive: Receive, send: Send) -> None:
    name = option(scope, "name")
    try:
        await read_body(receive)
        if option(scope, "start") == "yes":
            await start(send)
            await more(send, b"begun")
        routes.note(f"{name}-waits", True)
        async with asyncio.timeout(10):
            routes.note(name, [dict(await receive()) for _ in range(2)])
    finally:
        routes.note(f"{name}-finally", True)


@routes.at("leave-a-sender")
async def leave_a_task_that_answers(scope: Scope, receive: Receive, send: Send) -> None:
    async def answer_later() -> None:
        await routes.wait_bell("answer-later")
        try:
            await answer(send, b"late")
        except OSError as error:
            routes.note("answered-later", f"{type(error).__name__}: {error}")

    kept.append(asyncio.create_task(answer_later()))


@routes.at("receive-beside")
async def receive_in_a_task_beside(scope: Scope, receive: Receive, send: Send) -> None:
    name = option(scope, "name")
    await receive()

    async def wait_for_the_disconnect() -> None:
        message = await receive()
        routes.note(f"{name}-told", message["type"])

    async with asyncio.TaskGroup() as group:
        group.create_task(wait_for_the_disconnect())
        routes.note(f"{name}-waits", True)
        await routes.wait_bell(name)
    routes.note(name, {"handler": "rang", "second": (await receive())["type"]})


@routes.at("cancel-beside")
async def cancel_a_task_that_receives(scope: Scope, receive: Receive, send: Send) -> None:
    name = option(scope, "name")
    await receive()
    came: list[str] = []

    async def wait_for_the_disconnect() -> None:
        try:
            came.append((await receive())["type"])
        except asyncio.CancelledError:
            came.append("cancelled")
            raise

    task = asyncio.create_task(wait_for_the_disconnect())
    await asyncio.sleep(0)
    routes.note(f"{name}-waits", True)
    await routes.wait_bell(name)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() is (came == ["cancelled"])
    routes.note(name, came)


@routes.at("send-until-gone")
async def send_until_the_client_is_gone(scope: Scope, receive: Receive, send: Send) -> None:
    name = option(scope, "name")
    await start(send)
    routes.note(f"{name}-began", True)
    try:
        async with asyncio.timeout(10):
            while True:
                await more(send, b"x" * 1024)
                await asyncio.sleep(0.005)
    except TimeoutError:
        # An `OSError` as well, but not the one that is due.
        routes.note(name, {"kind": "no exception", "kinds": [], "again": "", "receive": ""})
    except OSError as error:
        again = "nothing"
        try:
            await more(send, b"again")
        except OSError as second:
            again = type(second).__name__
        last = await receive()
        routes.note(name, {**describe(error), "again": again, "receive": last["type"]})
        raise


@routes.at("read-cancelled")
async def cancel_receive_between_chunks(scope: Scope, receive: Receive, send: Send) -> None:
    """Cancels `receive()` again and again while the body trickles in; no byte may be lost."""
    body = b""
    cancelled = 0
    while True:
        try:
            message = await asyncio.wait_for(receive(), 0.002)
        except TimeoutError:
            cancelled += 1
            routes.note(option(scope, "name"), True)
            continue
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        if not message["more_body"]:
            break
    await answer_json(send, {"body": body.decode(), "cancelled": cancelled})


@routes.at("tasks")
async def use_tasks(scope: Scope, receive: Receive, send: Send) -> None:
    """`receive` and `send` inside tasks, `wait_for`, `gather` and `wait`."""
    message = await asyncio.create_task(_await(receive()))
    await asyncio.wait_for(start(send), 5)
    (first, _), _ = await asyncio.gather(
        asyncio.gather(asyncio.sleep(0, "slept"), more(send, b"a")), asyncio.sleep(0)
    )
    done, pending = await asyncio.wait([asyncio.create_task(more(send, b"b"))], timeout=5)
    assert len(done) == 1
    assert not pending
    await asyncio.shield(more(send, message["body"]))
    await asyncio.create_task(end(send, first.encode()))


async def _await(awaitable: Any) -> Any:
    return await awaitable


@routes.at("two-receives")
async def receive_twice_at_once(scope: Scope, receive: Receive, send: Send) -> None:
    """What two concurrent `receive()` see together is the body, once."""
    results = await asyncio.gather(
        asyncio.create_task(_await(receive())),
        asyncio.create_task(_await(asyncio.wait_for(receive(), 1))),
        return_exceptions=True,
    )
    seen = [result["body"].decode() for result in results if isinstance(result, dict) and "body" in result]
    await answer_json(send, seen)


@routes.at("interleaved-sends")
async def send_from_many_tasks(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)

    async def write(letter: bytes) -> None:
        for _ in range(100):
            await more(send, letter)

    async with asyncio.TaskGroup() as group:
        for letter in (b"a", b"b", b"c"):
            group.create_task(write(letter))
    await end(send)


@routes.at("current-task")
async def compare_current_tasks(scope: Scope, receive: Receive, send: Send) -> None:
    first = asyncio.current_task()
    assert first is not None
    await read_body(receive)
    seen = [asyncio.current_task()]
    await asyncio.sleep(0)
    seen.append(asyncio.current_task())
    await asyncio.sleep(0.01)
    seen.append(asyncio.current_task())
    await start(send)
    seen.append(asyncio.current_task())
    await more(send, b"")
    seen.append(asyncio.current_task())
    in_child = await asyncio.create_task(_current())
    facts = {
        "is_task": isinstance(first, asyncio.Task),
        "same": all(task is first for task in seen),
        "child_differs": in_child is not first,
        "done": first.done(),
        "cancelling": first.cancelling(),
        "among_all": first in asyncio.all_tasks(),
        "loop": first.get_loop() is asyncio.get_running_loop(),
        "named": bool(first.get_name()),
        "coroutine": first.get_coro() is not None,
    }
    await end(send, repr(facts).encode())


async def _current() -> asyncio.Task[Any] | None:
    return asyncio.current_task()


@routes.at("task-number")
async def name_the_task(scope: Scope, receive: Receive, send: Send) -> None:
    task = asyncio.current_task()
    await asyncio.sleep(0.05)
    await answer_json(send, task.get_name() if task else None)
    routes.note("tasks-alive", len(asyncio.all_tasks()))


@routes.at("asyncio")
async def use_asyncio(scope: Scope, receive: Receive, send: Send) -> None:
    """One asyncio or anyio feature by its name."""
    feature = scope["path"].removeprefix("/asyncio/")
    if option(scope, "read") == "yes":
        await read_body(receive)
    await answer(send, str(await FEATURES[feature]()).encode())


async def _timeout() -> str:
    try:
        async with asyncio.timeout(0.02):
            await asyncio.sleep(10)
    except TimeoutError:
        return "timed out"
    return "no timeout"


async def _wait_for() -> str:
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.02)
    except TimeoutError:
        return "timed out"
    return "no timeout"


async def _task_group() -> list[int]:
    async def double(number: int) -> int:
        await asyncio.sleep(0.001 * number)
        return number * 2

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(double(number)) for number in range(3)]
    return [task.result() for task in tasks]


async def _failing_task_group() -> str:
    async def fail() -> None:
        raise ValueError("failed")

    caught = "nothing"
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await asyncio.sleep(10)
    except* ValueError:
        caught = "caught"
    return caught


async def _cancel_self() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        task.uncancel()
        await asyncio.sleep(0)
        return "cancelled once"
    return "not cancelled"


async def _anyio_task_group() -> list[int]:
    found: list[int] = []

    async def add(number: int) -> None:
        await anyio.sleep(0.001)
        found.append(number)

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(add, number)
    return sorted(found)


async def _anyio_move_on() -> str:
    with anyio.move_on_after(0.02) as moved:
        await anyio.sleep(10)
    return "moved on" if moved.cancelled_caught else "stayed"


async def _anyio_fail_after() -> str:
    try:
        with anyio.fail_after(0.02):
            await anyio.sleep(10)
    except TimeoutError:
        return "timed out"
    return "no timeout"


async def _anyio_cancel_scope() -> str:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 10)
        group.cancel_scope.cancel()
    return "cancelled"


async def _to_thread() -> int:
    return await asyncio.to_thread(sum, [1, 2, 3])


async def _anyio_to_thread() -> int:
    return await anyio.to_thread.run_sync(sum, [1, 2, 3])


async def _threadsafe() -> str:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str] = loop.create_future()

    def call() -> None:
        time.sleep(0.02)
        loop.call_soon_threadsafe(future.set_result, "woken")

    await asyncio.gather(asyncio.to_thread(call), future)
    return future.result()


async def _executor() -> int:
    return await asyncio.get_running_loop().run_in_executor(None, sum, [4, 5])


async def _call_later() -> str:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str] = loop.create_future()
    loop.call_later(0.01, future.set_result, "later")
    return await future


async def _event() -> str:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    await event.wait()
    return "set"


async def _lock() -> str:
    lock = asyncio.Lock()
    async with lock:
        await asyncio.sleep(0)
    return "unlocked"


async def _queue() -> int:
    queue: asyncio.Queue[int] = asyncio.Queue(1)

    async def fill() -> None:
        for number in range(10):
            await queue.put(number)

    task = asyncio.create_task(fill())
    total = sum([await queue.get() for _ in range(10)])
    await task
    return total


async def _subprocess() -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print('child')", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode().strip()


async def _streams() -> str:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"ping")
    reply = await reader.read()
    writer.close()
    server.close()
    return reply.decode()


async def _async_generator() -> list[int]:
    async def count() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    return [number async for number in count()]


async def _sleep_zero_yields() -> list[str]:
    order: list[str] = []

    async def other() -> None:
        for _ in range(3):
            order.append("other")
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(3):
        order.append("handler")
        await asyncio.sleep(0)
    await task
    return order


async def _deep() -> int:
    async def descend(depth: int) -> int:
        if depth == 0:
            await asyncio.sleep(0)
            return 0
        return 1 + await descend(depth - 1)

    return await descend(200)


FEATURES = {
    "timeout": _timeout,
    "wait-for": _wait_for,
    "task-group": _task_group,
    "failing-task-group": _failing_task_group,
    "cancel-self": _cancel_self,
    "anyio-task-group": _anyio_task_group,
    "anyio-move-on-after": _anyio_move_on,
    "anyio-fail-after": _anyio_fail_after,
    "anyio-cancel-scope": _anyio_cancel_scope,
    "to-thread": _to_thread,
    "anyio-to-thread": _anyio_to_thread,
    "call-soon-threadsafe": _threadsafe,
    "executor": _executor,
    "call-later": _call_later,
    "event": _event,
    "lock": _lock,
    "queue": _queue,
    "subprocess": _subprocess,
    "streams": _streams,
    "async-generator": _async_generator,
    "sleep-zero": _sleep_zero_yields,
    "deep": _deep,
}


@routes.at("context")
async def show_and_set_context(scope: Scope, receive: Receive, send: Send) -> None:
    """What the context holds at the start, and after suspending with values of our own in it."""
    before = {"lifespan": in_lifespan.get(), "request": in_request.get()}
    in_request.set(scope["path"])
    in_lifespan.set("changed by a request")
    kept = []
    await read_body(receive)
    kept.append(in_request.get())
    for _ in range(3):
        await asyncio.sleep(0.001)
        kept.append(in_request.get())
    await start(send)
    kept.append(in_request.get())
    await more(send, b" ")
    kept.append(in_request.get())
    kept.append(await asyncio.create_task(_show_in_request()))
    kept.append(await asyncio.to_thread(in_request.get))
    await end(send, repr({"before": before, "kept": kept}).encode())


async def _show_in_request() -> str:
    return in_request.get()


@routes.at("reset-context")
async def reset_across_suspensions(scope: Scope, receive: Receive, send: Send) -> None:
    """A token is only good in the context it was made in."""
    token = in_request.set("for a while")
    await read_body(receive)
    await asyncio.sleep(0.001)
    in_request.reset(token)
    await answer(send, in_request.get().encode())


@routes.at("fail")
async def fail(scope: Scope, receive: Receive, send: Send) -> None:
    kind = option(scope, "kind")
    when = option(scope, "when", "before")
    if when in ("after-start", "after-body", "after-end"):
        await start(send)
    if when in ("after-body", "after-end"):
        await more(send, b"a part")
    if when == "after-end":
        await end(send)
    if option(scope, "suspended") == "yes":
        await asyncio.sleep(0.01)
    raise_marked(kind)


def raise_marked(kind: str) -> None:
    errors: dict[str, BaseException] = {
        "value": ValueError("marked by the test"),
        "os": OSError("an error of the application's own"),
        "connection": ConnectionResetError("of another connection"),
        "cancelled": asyncio.CancelledError("by nobody"),
        "base": BaseException("of the highest kind"),
        "stop": StopIteration("out of a coroutine"),
        "stop-async": StopAsyncIteration("out of a coroutine"),
        "generator-exit": GeneratorExit("out of nowhere"),
        "system-exit": SystemExit(5),
        "keyboard": KeyboardInterrupt("from the code"),
        "group": ExceptionGroup("several", [ValueError("one"), TypeError("two")]),
        "recursion": RecursionError("too deep"),
        "memory": MemoryError("too much"),
        "surrogate": ValueError("\udcff\x1b[31m"),
    }
    if kind == "no-str":
        raise UnprintableError
    raise errors[kind]


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot be printed")

    __repr__ = __str__


@routes.at("break-the-log")
async def raise_what_cannot_be_logged(scope: Scope, receive: Receive, send: Send) -> None:
    class UnspeakableError(Exception):
        pass

    def refuse(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0] is UnspeakableError:
            raise RuntimeError("a filter of the application's")
        return True

    for name in ("bridgehead", "bridgehead.error", "uvicorn.error"):
        logging.getLogger(name).addFilter(refuse)
    raise UnspeakableError


@routes.at("cancel-itself")
async def cancel_the_own_task(scope: Scope, receive: Receive, send: Send) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel(f"cancelled by itself, {option(scope, 'name')}")
    await asyncio.sleep(10)


@routes.at("silent")
async def send_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    if option(scope, "read") == "yes":
        await read_body(receive)


@routes.at("only-start")
async def only_start(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send, (b"content-length", b"5"))


@routes.at("no-end")
async def never_end(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    await more(send, b"a part")


@routes.at("head-first")
async def send_the_head_first(scope: Scope, receive: Receive, send: Send) -> None:
    """An empty piece of body is enough for it to leave; the client ends the wait."""
    await start(send)
    await more(send, b"")
    await receive()
    await receive()


@routes.at("endless-send")
async def send_for_ever(scope: Scope, receive: Receive, send: Send) -> None:
    """The endless loop of the fairness tests: nothing in it yields but `send` itself."""
    await start(send)
    routes.note("endless-send", True)
    while True:
        await more(send, b"x" * int(option(scope, "size", "1")))


@routes.at("sends-at-once")
async def send_from_a_task_each(scope: Scope, receive: Receive, send: Send) -> None:
    """A task for each piece: each begins before the one before it has ended."""
    await start(send)
    tasks = [asyncio.ensure_future(more(send, b"%04d" % number)) for number in range(1000)]
    await asyncio.gather(*tasks)
    await end(send)


@routes.at("endless-receive")
async def receive_for_ever(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads an upload that is always there; ends with the client."""
    routes.note("endless-receive", True)
    while (await receive())["type"] != "http.disconnect":
        pass


@routes.at("disconnected-receive")
async def receive_disconnects_for_ever(scope: Scope, receive: Receive, send: Send) -> None:
    """Keeps asking after the end: each answer is there at once."""
    await answer(send, b"answered")
    for _ in range(300_000):
        assert (await receive())["type"] == "http.disconnect"
    routes.note("disconnected-receive", True)


@routes.at("timer")
async def time_a_timer(scope: Scope, receive: Receive, send: Send) -> None:
    """How late ten timers of 10 ms were, the worst of them."""
    loop = asyncio.get_running_loop()
    worst = 0.0
    for _ in range(10):
        began = loop.time()
        await asyncio.sleep(0.01)
        worst = max(worst, loop.time() - began - 0.01)
    await answer_json(send, worst)


@routes.at("sleeps")
async def sleep_zero_many_times(scope: Scope, receive: Receive, send: Send) -> None:
    for _ in range(int(option(scope, "count"))):
        await asyncio.sleep(0)
    await answer(send, b"slept")


@routes.at("chunks")
async def stream_chunks(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    for number in range(int(option(scope, "count"))):
        await more(send, b"%d," % number)
    await end(send)


@routes.at("background")
async def work_after_the_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"answered")
    await asyncio.sleep(0.05)
    routes.note("background", "worked")


@routes.at("mutate-scope")
async def mutate_the_scope(scope: Scope, receive: Receive, send: Send) -> None:
    headers = len(list(scope["headers"]))
    scope["headers"] = []
    scope["method"] = "CHANGED"
    scope["asgi"]["version"] = "changed"
    scope["extra"] = object()
    await answer_json(send, headers)


@routes.at("reuse-message")
async def reuse_one_message(scope: Scope, receive: Receive, send: Send) -> None:
    """The same dict and the same bytearray for each chunk, changed after each `send`."""
    await start(send)
    body = bytearray(b"0")
    message: dict[str, Any] = {"type": "http.response.body", "body": body, "more_body": True}
    for digit in b"0123456789":
        body[0] = digit
        await send(message)
    message["more_body"] = False
    body[0] = ord("!")
    await send(message)


def plain_function(scope: Scope, receive: Receive, send: Send) -> Any:
    """Not an `async def`, yet what it returns can be awaited."""
    return app(scope, receive, send)


class Instance:
    """An application that is an object."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    async def method(self, scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    def __len__(self) -> int:
        # Falsy, like an empty router: only `None` means that there is no application.
        return 0


instance = Instance()
method = instance.method


def factory() -> Instance:
    return Instance()


@routes.at("uncaught-misuse")
async def misuse_send(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": "200"})


class Subclass(dict[str, Any]):
    """Frameworks do send these."""


@routes.at("dict-subclass")
async def send_a_subclass(scope: Scope, receive: Receive, send: Send) -> None:
    await send(Subclass(type="http.response.start", status=200))
    await send(Subclass(type="http.response.body", body=b"subclass"))


@routes.at("endless-until-gone")
async def endless_until_gone(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0.005)
    except OSError as error:
        routes.note(option(scope, "name"), type(error).__name__)
        raise


@routes.at("retry-when-gone")
async def retry_when_the_client_is_gone(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends the same message again and again to a client that has left, and notes what each came to."""
    name, message = option(scope, "name"), option(scope, "message")
    head = {"type": "http.response.start", "status": 200, "headers": []}
    if declared := option(scope, "declared"):
        head["headers"] = [(b"content-length", declared.encode())]
    if message != "start":
        await send(head)
        await more(send, b"first")
    routes.note(f"{name}-began", True)
    while (await receive())["type"] != "http.disconnect":
        pass
    body = {"type": "http.response.body", "body": b"again", "more_body": message == "piece"}
    messages: list[Message] = [head, head, body] if message == "start" else [body, body, body]
    came: list[str] = []
    for each in messages:
        try:
            await send(each)
        except Exception as error:
            came.append(type(error).__name__)
        else:
            came.append("nothing")
    routes.note(name, came)


@routes.at("send-path")
async def send_path(scope: Scope, receive: Receive, send: Send) -> None:
    """`?PATH[&NAME]`: the file, or the name of the error; `NAME` notes the error, too."""
    path, _, name = unquote(scope["query_string"].decode()).partition("&")
    try:
        await start(send)
        await send({"type": "http.response.pathsend", "path": path})
    except FileNotFoundError as error:
        await end(send, type(error).__name__.encode())
    except OSError as error:
        routes.note(name, type(error).__name__)


@routes.at("send-descriptor")
async def send_descriptor(scope: Scope, receive: Receive, send: Send) -> None:
    """From the tenth byte 100 by descriptor, then 10 that were read after it."""
    with open(unquote(scope["query_string"].decode()), "rb", buffering=0) as file:
        file.seek(10)
        await start(send)
        await send({"type": "http.response.zerocopysend", "file": file, "count": 100, "more_body": True})
        await end(send, file.read(10))


@routes.at("send-pipe")
async def send_pipe(scope: Scope, receive: Receive, send: Send) -> None:
    reading, writing = os.pipe()
    try:
        await start(send)
        sending = asyncio.ensure_future(send({"type": "http.response.zerocopysend", "file": reading}))
        os.write(writing, b"through ")
        await asyncio.sleep(0)
        os.write(writing, b"a pipe")
        os.close(writing)
        await sending
    finally:
        os.close(reading)


@routes.at("trailers")
async def send_trailers(scope: Scope, receive: Receive, send: Send) -> None:
    """The head leaves before the trailers; `?announced` announces one of them in it."""
    headers = [(b"trailer", b"X-Sum")] if scope["query_string"] == b"announced" else []
    await send({"type": "http.response.start", "status": 200, "headers": headers, "trailers": True})
    match scope["query_string"]:
        case b"whole":
            await end(send, b"onetwo")
            await asyncio.sleep(0.01)
        case b"large":
            await end(send, b"large" * 1_000_000)
        case _:
            await more(send, b"one")
            await asyncio.sleep(0.01)
            await end(send, b"two")
    late = [(b"x-late", b"1"), (b"x-late", b"2")]
    await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"6"), *late]})
    if scope["query_string"] == b"large":
        print("the trailers of a large answer were sent", file=sys.stderr, flush=True)


@routes.at("until-shutdown")
async def stream_until_shutdown(scope: Scope, receive: Receive, send: Send) -> None:
    shutdown = scope["extensions"]["bridgehead.shutdown"]
    await start(send)
    await more(send, b"" if shutdown["is_set"]() else b"not yet")
    await shutdown["wait"]()
    await end(send, b"it has begun" if shutdown["is_set"]() else b"")


@routes.at("callables")
async def show_the_callables(scope: Scope, receive: Receive, send: Send) -> None:
    """What those who ask before they call find out about `receive` and `send`."""
    shown = {}
    for name, function in (("receive", receive), ("send", send)):
        shown[name] = {
            "inspect": inspect.iscoroutinefunction(function),
            "asyncio": asyncio.iscoroutinefunction(function),
            "partial": inspect.iscoroutinefunction(functools.partial(function)),
            "name": getattr(function, "__name__", None),
            "signature": str(inspect.signature(function)),
            "awaitable": inspect.isawaitable(function),
            "weak": weakref.ref(function)() is function,
        }
    wrong = []
    calls: list[tuple[Any, tuple[object, ...], dict[str, object]]]
    calls = [(receive, (1,), {}), (send, (), {}), (send, ({}, {}), {}), (send, (), {"event": {}})]
    for function, arguments, named in calls:
        try:
            function(*arguments, **named)
        except TypeError:
            wrong.append("TypeError")
    named = {"message": {"type": "http.response.start", "status": 200, "headers": []}}
    await send(**named)  # type: ignore[call-arg]
    body = json.dumps({**shown, "wrong": wrong}).encode()
    await functools.partial(send, {"type": "http.response.body", "body": body})()
