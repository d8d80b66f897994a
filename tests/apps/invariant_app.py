"""Handlers that look at what the bridge promises of each step: its task, context, thread and loop.

Run by itself: `serve invariant_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

from kit import Receive, Routes, Scope, Send, answer, answer_json, end, more, option, read_body, start

routes = Routes()
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")
running_loop_set_on: list[int] = []
scheduled: Counter[str] = Counter()
resumed: weakref.WeakKeyDictionary[asyncio.Task[Any], int] = weakref.WeakKeyDictionary()
woken: Counter[str] = Counter()
streamed: Counter[str] = Counter()
tasks: dict[str, asyncio.Task[Any]] = {}
waited_for: weakref.WeakValueDictionary[str, asyncio.Future[None]] = weakref.WeakValueDictionary()
loop_thread = 0


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "lifespan":
        await routes(scope, receive, send)
        return
    global loop_thread
    loop_thread = threading.get_ident()
    await receive()
    _watch(asyncio.get_running_loop())
    if os.environ.get("HOGS"):
        sys.setswitchinterval(1e-6)
        for _ in range(int(os.environ["HOGS"])):
            threading.Thread(target=_hog, daemon=True).start()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


def _hog() -> None:
    while True:
        sum(range(1000))


def _watch(loop: Any) -> None:
    """Counts what is asked of the loop, by the kind of what is to be called."""
    kind = type(loop)
    call_soon = kind.call_soon

    def call_soon_and_count(self: Any, callback: Any, *args: Any, **options: Any) -> Any:
        scheduled[type(callback).__name__] += 1
        if isinstance(task := getattr(callback, "__self__", None), asyncio.Task):
            resumed[task] = resumed.get(task, 0) + 1
        return call_soon(self, callback, *args, **options)

    # Of the type, since our steppers may have an attribute of the instance's for a moment.
    kind.call_soon = call_soon_and_count
    for name in ("call_soon_threadsafe", "_write_to_self"):
        if (original := getattr(loop, name, None)) is not None:
            setattr(loop, name, _counted(name, original))
    events: Any = asyncio.events
    set_running_loop = events._set_running_loop

    def set_and_note(running: Any) -> None:
        running_loop_set_on.append(threading.get_ident())
        set_running_loop(running)

    events._set_running_loop = set_and_note
    if asyncio.get_running_loop() is not loop or loop_thread != threading.get_ident():
        raise RuntimeError("the lifespan is not on the loop's thread")


def _counted(name: str, original: Any) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        woken[name] += 1
        return original(*args, **options)

    return call


# --- each step of a request


class Duck:
    """A future of somebody's own, with asyncio's manners; notes which task is current as it is looked at."""

    def __init__(self, look: Callable[[str], None]) -> None:
        self._look = look
        self._callbacks: list[tuple[Any, Any]] = []
        self._blocking = False

    @property
    def _asyncio_future_blocking(self) -> bool:
        self._look("looked at")
        return self._blocking

    @_asyncio_future_blocking.setter
    def _asyncio_future_blocking(self, value: bool) -> None:
        self._look("looked at")
        self._blocking = value

    def get_loop(self) -> asyncio.AbstractEventLoop:
        self._look("looked at")
        return asyncio.get_running_loop()

    def done(self) -> bool:
        return False

    def result(self) -> None:
        return None

    def cancel(self, **_: object) -> bool:
        return False

    def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
        self._look("looked at")
        asyncio.get_running_loop().call_soon(callback, self, context=context)

    def __await__(self) -> Generator[Any, None, None]:
        self._blocking = True
        yield self


class Done:
    """Yields a future that is done already, as a task may be by the time it is waited for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future = loop.create_future()
        self.future.set_result(None)

    def __await__(self) -> Generator[Any, None, None]:
        future: Any = self.future
        future._asyncio_future_blocking = True
        yield future


@routes.at("steps")
async def look_around_at_each_step(scope: Scope, receive: Receive, send: Send) -> None:
    """Suspends in every way there is, and notes before, after and between what is current."""
    name = option(scope, "name")
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    variable.set(name)
    seen: dict[str, list[bool]] = {}

    def look(step: str) -> None:
        is_ours = asyncio.current_task() is task
        on_thread = threading.get_ident() == loop_thread
        found = [is_ours, variable.get() == name, on_thread, asyncio.get_running_loop() is loop]
        seen[step] = [before and now for before, now in zip(seen.get(step, found), found, strict=True)]

    def between() -> None:
        no_task = asyncio.current_task() is None
        seen["between"] = [no_task, variable.get() == name, threading.get_ident() == loop_thread, True]

    look("first step")
    loop.call_soon(between)
    ways: dict[str, Callable[[], Awaitable[object]]] = {
        "sleep(0)": lambda: asyncio.sleep(0),
        "sleep": lambda: asyncio.sleep(0.001),
        "a future": lambda: _resolved_later(loop),
        "a future that is done": lambda: Done(loop),
        "a future of somebody's own": lambda: Duck(look),
        "a task": lambda: asyncio.create_task(asyncio.sleep(0)),
        "a thread": lambda: asyncio.to_thread(lambda: None),
        "receive": lambda: read_body(receive),
    }
    for way, wait in ways.items():
        if way == "receive":
            routes.note(f"{name}-receives", True)
        await wait()
        look(way)
    for _ in range(300):
        await Done(loop)
        look("many steps")
    await start(send)
    look("start")
    for _ in range(300):
        await more(send, b" ")
        look("send")
    await end(send)
    look("end")
    routes.note(f"{name}-steps", seen)


def _resolved_later(loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
    future = loop.create_future()
    loop.call_later(0.001, future.set_result, None)
    return future


@routes.at("task")
async def show_the_task(scope: Scope, receive: Receive, send: Send) -> None:
    """What `Task.__init__` sets, at the first step and after a wait."""
    task: Any = asyncio.current_task()
    names = []
    for _ in range(2):
        names.append(task.get_name())
        facts = {
            "plain": type(task) is asyncio.Task,
            "a task": isinstance(task, asyncio.Task),
            "loop": task.get_loop() is asyncio.get_running_loop(),
            "named": names[-1].startswith("Task-") and len(set(names)) == 1,
            "among all": task in asyncio.all_tasks(),
            "done": task.done(),
            "cancelling": task.cancelling(),
            "shown": repr(task).startswith("<Task pending"),
            "weak": weakref.ref(task)() is task,
        }
        if len(names) == 1:
            await asyncio.sleep(0)
    await answer_json(send, facts)


# --- what the loop is asked to do


@routes.at("scheduled")
async def show_what_was_scheduled(scope: Scope, receive: Receive, send: Send) -> None:
    """What was asked of the loop since the last time, and how long its queue is in this first step."""
    loop: Any = asyncio.get_running_loop()
    shown = dict(scheduled), len(getattr(loop, "_ready", ()))
    scheduled.clear()
    await answer_json(send, shown)


@routes.at("woken")
async def show_wakes(scope: Scope, receive: Receive, send: Send) -> None:
    shown = dict(woken)
    woken.clear()
    await answer_json(send, shown)


@routes.at("loop")
async def show_the_loop(scope: Scope, receive: Receive, send: Send) -> None:
    """The running loop as each thread sees it."""

    def look() -> str:
        try:
            return repr(asyncio.get_running_loop())
        except RuntimeError:
            return "none"

    others = [await asyncio.to_thread(look) for _ in range(2)]
    await answer_json(
        send,
        {
            "others": others,
            "ready": hasattr(asyncio.get_running_loop(), "_ready"),
            "set by": len(running_loop_set_on),
        },
    )


@routes.at("threads")
async def wake_from_threads(scope: Scope, receive: Receive, send: Send) -> None:
    """A thread wakes the loop, which has nothing else to do, again and again."""
    loop = asyncio.get_running_loop()
    for _ in range(20):
        future = loop.create_future()
        threading.Thread(target=_wake, args=(loop, future)).start()
        await future
    await answer(send, b"woken")


def _wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    # By then the loop polls: it has nothing else to do.
    threading.Event().wait(0.01)
    loop.call_soon_threadsafe(future.set_result, None)


@routes.at("stream")
async def stream_to_the_end(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    for _ in range(40):
        await more(send, b"s" * 2_000)
    await end(send)


@routes.at("endless")
async def stream_until_the_client_leaves(scope: Scope, receive: Receive, send: Send) -> None:
    """As fast as the client reads: pieces so small that its socket is never full, so many that this parks."""
    await start(send)
    with suppress(OSError):
        while True:
            await more(send, b"e" * 700)
            streamed["pieces"] += 1


@routes.at("streamed")
async def show_how_much_was_streamed(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, streamed["pieces"])


@routes.at("child")
async def answer_by_a_child(scope: Scope, receive: Receive, send: Send) -> None:
    """What is scheduled here runs though nothing but the client's leaving would wake the loop again."""
    kind = option(scope, "by")
    loop = asyncio.get_running_loop()
    if kind == "task":
        child = asyncio.create_task(answer(send, b"by a task"))
        await read_until_gone(receive)
        await child
    elif kind == "timer":
        timer = loop.create_future()
        loop.call_later(0.01, timer.set_result, None)
        child = asyncio.create_task(_after(timer, send))
        await read_until_gone(receive)
        await child
    else:
        chained = loop.create_future()
        loop.call_soon(loop.call_soon, chained.set_result, None)
        child = asyncio.create_task(_after(chained, send))
        await read_until_gone(receive)
        await child


async def _after(future: asyncio.Future[None], send: Send) -> None:
    await future
    await answer(send, b"by a future")


async def read_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


# --- cancellation, and who holds whom


@routes.at("swallow")
async def swallow_a_cancellation(scope: Scope, receive: Receive, send: Send) -> None:
    """Is cancelled while it waits, and waits again."""
    name, way = option(scope, "name"), option(scope, "way")
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    tasks[name] = task
    thrown = 0
    waits: list[Callable[[], Awaitable[object]]] = [
        lambda: asyncio.sleep(0),
        lambda: _resolved_later(loop),
        lambda: Done(loop),
        lambda: asyncio.create_task(asyncio.sleep(0)),
        lambda: asyncio.sleep(0.001),
    ]
    first: dict[str, Callable[[], Awaitable[object]]] = {
        "receive": receive,
        "future": loop.create_future,
        "sleep": lambda: asyncio.sleep(60),
        "itself": lambda: asyncio.sleep(0) if task.cancel() else receive(),
        "scheduled": lambda: asyncio.sleep(0),
    }
    if way == "scheduled":
        loop.call_soon(task.cancel)
    elif way != "itself":
        routes.note(f"{name}-waits", True)
    for wait in (first[way], *waits):
        try:
            await wait()
        except asyncio.CancelledError:
            thrown += 1
    left = [task.cancelling(), task.uncancel()]
    body = await read_body(receive)
    del tasks[name]
    await answer_json(send, {"thrown": thrown, "cancelling": left, "body": body.decode()})


@routes.at("cancel")
async def cancel_another(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, tasks[option(scope, "name")].cancel())


@routes.at("alone")
async def wait_with_nobody(scope: Scope, receive: Receive, send: Send) -> None:
    """Waits for a future that only this very coroutine holds."""
    name = option(scope, "name")
    if option(scope, "by") == "receive":
        routes.note(f"{name}-waits", True)
        await read_body(receive)
    else:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waited_for[name] = future
        routes.note(f"{name}-waits", True)
        await future
    await answer(send, b"kept")


@routes.at("collect")
async def collect_garbage(scope: Scope, receive: Receive, send: Send) -> None:
    for _ in range(3):
        gc.collect()
    await answer(send, b"collected")


@routes.at("resolve")
async def resolve_what_is_left(scope: Scope, receive: Receive, send: Send) -> None:
    future = waited_for.get(option(scope, "name"))
    if future is not None:
        future.set_result(None)
    await answer_json(send, future is not None)


# --- the order in which futures call


@routes.at("in-turn")
async def note_when_waiters_go_on(scope: Scope, receive: Receive, send: Send) -> None:
    """Tasks that wait in `receive` go on in the drain, those that wait for asyncio's futures a turn later."""
    await read_body(receive)
    name = option(scope, "name")
    order: list[str] = []
    usual = asyncio.get_running_loop().create_future()

    async def on_ours(which: str) -> None:
        await receive()
        order.append(which)
        if not usual.done():
            usual.set_result(None)

    async def on_asyncios() -> None:
        await usual
        order.append("asyncio's")

    waiting = [asyncio.create_task(each) for each in (on_ours("one"), on_asyncios(), on_ours("two"))]
    await asyncio.sleep(0)
    routes.note(f"{name}-waits", True)
    await asyncio.wait(waiting)
    routes.note(f"{name}-order", order)


@routes.at("at-once")
async def count_how_often_this_is_scheduled(scope: Scope, receive: Receive, send: Send) -> None:
    """What it takes to go on: a callback of the loop's, or none."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    await _resolved_later(loop)
    for_asyncios = resumed.get(task, 0)
    routes.note("at-once-waits", True)
    await read_body(receive)
    await answer_json(send, {"asyncio's": for_asyncios, "ours": resumed.get(task, 0) - for_asyncios})


@routes.at("within")
async def resolve_ours_within_a_task(scope: Scope, receive: Receive, send: Send) -> None:
    """The end of an answer resolves what another task waits for, but not in the middle of its step."""
    await read_body(receive)
    order: list[str] = []

    async def wait() -> None:
        await receive()
        order.append("who waited" if asyncio.current_task() is waiting else "somebody else")

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await answer(send, b"answered")
    order.append("who answered")
    await waiting
    routes.note(f"{option(scope, 'name')}-order", order)


# --- how much one request may do


@routes.at("share")
async def count_what_is_done_between_turns(scope: Scope, receive: Receive, send: Send) -> None:
    """How much that need not wait this request does, at most, before the loop has its turn."""
    loop = asyncio.get_running_loop()
    counts = [0]
    ends = False

    def turn() -> None:
        counts.append(0)
        if not ends:
            loop.call_soon(turn)

    of = option(scope, "of")
    if of == "pieces":
        await start(send)
    else:
        await answer(send, b"answered")
    loop.call_soon(turn)
    for _ in range(2000):
        if of == "pieces":
            # The reader takes them meanwhile, so that some wait and go on at once.
            await more(send, b"x")
        else:
            # After the answer each of these has its message at once.
            await (receive() if of == "messages" else Done(loop))
        counts[-1] += 1
    if of == "pieces":
        await end(send)
    ends = True
    routes.note(f"{option(scope, 'name')}-share", max(counts))


@routes.at("stalled")
async def send_until_parked(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends for as long as it takes to be parked, then to the end; tells what it saw."""
    name = option(scope, "name")
    await start(send)
    sent, parked, saw = 0, False, "no error"
    chunk = b"s" * 32_768
    try:
        while not parked:
            task = asyncio.ensure_future(
                send({"type": "http.response.body", "body": chunk, "more_body": True})
            )
            sent += len(chunk)
            await asyncio.wait({task}, timeout=0.3)
            if not task.done():
                parked = True
                routes.note(f"{name}-parked", sent)
            await task
        await end(send)
    except Exception as error:
        saw = f"{type(error).__name__}: {error}"
        raise
    finally:
        routes.note(f"{name}-saw", [saw, sent])
