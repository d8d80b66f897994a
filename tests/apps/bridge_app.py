"""Handlers that look at the bridge from inside: futures, contexts, the loop's queue, what is left behind.

Run by itself: `serve bridge_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from typing import Any

from kit import Receive, Routes, Scope, Send, answer, answer_json, end, more, option, read_body, start

from bridgehead import private_names

routes = Routes()
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")
mixed: Counter[str] = Counter()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The router; its lifespan starts threads that burn the GIL, where they are asked for."""
    if scope["type"] != "lifespan":
        await routes(scope, receive, send)
        return
    await receive()
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


def _break_asyncio() -> None:
    """What a later Python may do to names that are not promised."""
    if name := os.environ.get("WITHOUT"):
        delattr(asyncio.tasks, name)
    if name := os.environ.get("CHANGED"):
        setattr(asyncio.tasks, name, lambda *_: None)
    for key in os.environ.get("RENAMED", "").split():
        # asyncio itself needs them by their names, so it is our table that has others.
        private_names.TABLE[key] = (private_names.TABLE[key][0], "_gone")


# --- what is left behind


@routes.at("task-type")
async def show_the_type_of_the_task(scope: Scope, receive: Receive, send: Send) -> None:
    task = asyncio.current_task()
    await answer_json(
        send,
        {
            "plain": type(task) is asyncio.Task,
            "a task": isinstance(task, asyncio.Task),
            "named": type(task).__name__,
        },
    )


class Refuses:
    """Yields itself as a future does, and cannot be waited for."""

    _asyncio_future_blocking = True

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def add_done_callback(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("refused by the test")

    def __await__(self) -> Generator[Any, None, None]:
        yield self


@routes.at("await-what-refuses")
async def await_what_refuses(scope: Scope, receive: Receive, send: Send) -> None:
    if option(scope, "late"):
        await asyncio.sleep(0)
    try:
        await Refuses()
    except RuntimeError as error:
        routes.note("refused", str(error))
        raise


@routes.at("objects")
async def show_objects(scope: Scope, receive: Receive, send: Send) -> None:
    """How many objects of the bridge's types there are; the uncollectable ones by their type's references."""
    await read_body(receive)
    made: dict[str, Any] = {"Receive": receive(), "Send": send({})}
    types = {type(each): name for name, each in made.items()}
    for each in made.values():
        each.close()
    gc.collect()
    wanted = ("Http", "Wait", "Task", "Parked", "Wakeup", "Step", "Context", "Flusher", "coroutine")
    counts = Counter(type(each).__name__ for each in gc.get_objects())
    await answer_json(
        send,
        {name: counts[name] for name in wanted}
        | {name: sys.getrefcount(kind) for kind, name in types.items()},
    )


@routes.at("references")
async def count_references(scope: Scope, receive: Receive, send: Send) -> None:
    """How many there are in all, which only a debug build of CPython knows; but for our list of targets."""
    routes.seen.clear()
    gc.collect()
    await answer(send, str(sys.gettotalrefcount()).encode())


@routes.at("suspended")
async def suspend(scope: Scope, receive: Receive, send: Send) -> None:
    """Nothing but the bridge refers to this task while it waits."""
    routes.note(f"suspended-{option(scope, 'name')}", True)
    body = await read_body(receive)
    await answer(send, body)


@routes.at("polls")
async def poll_for_a_disconnect(scope: Scope, receive: Receive, send: Send) -> None:
    """Asks again and again whether the client is there, as Starlette's `is_disconnected` does."""
    await read_body(receive)
    await start(send)
    for _ in range(int(option(scope, "count"))):
        task = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    gc.collect()
    left = sum(type(each).__name__ == "Wait" for each in gc.get_objects())
    await end(send, str(left).encode())


# --- the queue of the loop


@routes.at("cancelled-timers")
async def cancel_timers(scope: Scope, receive: Receive, send: Send) -> None:
    """So many that asyncio sweeps them out of its heap, into another one."""
    loop = asyncio.get_running_loop()
    for _ in range(300):
        loop.call_later(3600, int).cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await answer(send, b"cancelled")


@routes.at("sleep")
async def sleep_a_little(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(0.001)
    await answer(send, b"slept")


@routes.at("read-byte-by-byte")
async def read_byte_by_byte(scope: Scope, receive: Receive, send: Send) -> None:
    """A reader that takes one byte a call; nothing else happens on the loop meanwhile."""
    loop, calls = asyncio.get_running_loop(), 0
    emptied: asyncio.Future[None] = loop.create_future()
    reading, writing = os.pipe()
    os.write(writing, b"x" * int(option(scope, "count")))
    os.close(writing)

    def read() -> None:
        nonlocal calls
        if os.read(reading, 1):
            calls += 1
        else:
            emptied.set_result(None)
            loop.remove_reader(reading)

    loop.add_reader(reading, read)
    try:
        await emptied
    finally:
        loop.remove_reader(reading)
        os.close(reading)
    await answer_json(send, calls)


@routes.at("finalizers")
async def have_finalizers_call_soon(scope: Scope, receive: Receive, send: Send) -> None:
    """Leaves garbage that schedules a callback when it is collected."""
    Garbage(asyncio.get_running_loop())
    dead = Garbage.dead
    # What was scheduled before is called before.
    await asyncio.sleep(0)
    await answer_json(send, {"dead": dead, "called": Garbage.called})


class Garbage:
    dead = called = 0

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.itself = self
        self.loop = loop

    def __del__(self) -> None:
        Garbage.dead += 1
        self.loop.call_soon(Garbage.call)

    @staticmethod
    def call() -> None:
        Garbage.called += 1


@routes.at("collect-while-registering")
async def collect_while_registering(scope: Scope, receive: Receive, send: Send) -> None:
    """From now on the collector runs where a task that is being made is registered, as it may anywhere."""
    tasks: Any = asyncio.tasks
    weak = getattr(tasks, "_scheduled_tasks", None) or tasks._all_tasks
    add = weak.add

    def collect_and_add(task: asyncio.Task[Any]) -> None:
        gc.collect()
        add(task)

    weak.add = collect_and_add
    await answer(send)


# --- streams


@routes.at("large-end")
async def end_with_a_large_message(scope: Scope, receive: Receive, send: Send) -> None:
    """Two messages that together are above the high-water mark, the second one the last."""
    size = int(option(scope, "size"))
    saw = "no error"
    await start(send)
    try:
        await more(send, b"a" * size)
        await end(send, b"b" * size)
    except OSError as error:
        saw = type(error).__name__
    routes.note("large-end", saw)


@routes.at("duplex")
async def receive_beside_a_parked_send(scope: Scope, receive: Receive, send: Send) -> None:
    """Counts what it receives while its send is parked, and Tokio's tasks are not to be seen from here."""
    name = option(scope, "name")
    await start(send)
    got = 0

    async def read() -> None:
        nonlocal got
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            got += len(message["body"])
            routes.note(f"{name}-got", got)
            if not message["more_body"]:
                return

    reader = asyncio.create_task(read())
    for _ in range(256):
        await more(send, b"d" * 65_536)
    await end(send)
    await reader


@routes.at("endless")
async def send_and_receive_for_ever(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)

    async def read() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    reader = asyncio.create_task(read())
    routes.note("endless", True)
    try:
        while True:
            await more(send, b"e")
    finally:
        reader.cancel()


@routes.at("lateness")
async def measure_lateness(scope: Scope, receive: Receive, send: Send) -> None:
    loop = asyncio.get_running_loop()
    late = []
    for _ in range(20):
        due = loop.time() + 0.01
        await asyncio.sleep(0.01)
        late.append(loop.time() - due)
    await answer_json(send, max(late))


# --- the mixed routes of the stress test


@routes.at("mixed")
async def do_a_bit_of_everything(scope: Scope, receive: Receive, send: Send) -> None:
    kind = scope["path"].rpartition("/")[2]
    mixed[f"{kind} started"] += 1
    variable.set(kind)
    task = asyncio.current_task()
    await MIXED[kind](receive)
    assert asyncio.current_task() is task
    assert variable.get() == kind
    if kind == "disconnect":
        await start(send)
        await more(send, b"leave")
        while (await receive())["type"] != "http.disconnect":
            pass
    elif kind == "stream":
        await start(send)
        for _ in range(40):
            await more(send, b"0123456789" * 200)
        await end(send, kind.encode())
    else:
        await answer(send, kind.encode())
    assert asyncio.current_task() is task
    assert variable.get() == kind
    mixed[f"{kind} finished"] += 1


async def _nothing(receive: Receive) -> None:
    pass


async def _sleep(receive: Receive) -> None:
    await asyncio.sleep(0.002)


async def _spawn(receive: Receive) -> None:
    await asyncio.gather(*(asyncio.sleep(0) for _ in range(5)))


async def _group(receive: Receive) -> None:
    """One child's failure ends its siblings, and none of it the request."""

    async def fail() -> None:
        await asyncio.sleep(0.001)
        raise ValueError("expected")

    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(60))
            group.create_task(fail())
            await read_body(receive)


async def _timeout(receive: Receive) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0.001):
            await asyncio.sleep(1)


async def _thread(receive: Receive) -> None:
    assert await asyncio.to_thread(variable.get) == "thread"


async def _upload(receive: Receive) -> None:
    assert len(await read_body(receive)) == 200_000


async def _receive(receive: Receive) -> None:
    await read_body(receive)
    with suppress(TimeoutError):
        await asyncio.wait_for(receive(), 0.001)


MIXED = {
    "plain": _nothing,
    "stream": _nothing,
    "disconnect": read_body,
    "body": read_body,
    "upload": _upload,
    "sleep": _sleep,
    "spawn": _spawn,
    "group": _group,
    "timeout": _timeout,
    "thread": _thread,
    "receive": _receive,
}


@routes.at("mixed-counts")
async def show_how_many_finished(scope: Scope, receive: Receive, send: Send) -> None:
    """Once all have, of those that started; of those that do not, what they wait for."""
    try:
        async with asyncio.timeout(10):
            while any(mixed[f"{kind} started"] != mixed[f"{kind} finished"] for kind in MIXED):
                await asyncio.sleep(0.01)
    except TimeoutError:
        for task in asyncio.all_tasks():
            print(task, getattr(task, "_fut_waiter", None), file=sys.stderr)
            task.print_stack()
    await answer_json(send, mixed)


LARGE = b"l" * 4_000_000


@routes.at("lent")
async def answer_with_what_stays_ours(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, LARGE)


@routes.at("lent-count")
async def count_who_holds_it(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, sys.getrefcount(LARGE))


# --- the future that `receive` waits for


def wait_of(receive: Receive) -> Any:
    """What a task that awaits `receive()` is suspended on."""
    awaitable: Any = receive()
    return awaitable.send(None)


def raised_by(call: Any) -> str:
    try:
        call()
    except BaseException as error:
        return f"{type(error).__name__}{error.args}"
    return "nothing"


@routes.at("future")
async def examine_the_future(scope: Scope, receive: Receive, send: Send) -> None:
    await read_body(receive)
    found = await FUTURES[scope["path"].rpartition("/")[2]](receive)
    await answer_json(send, found)


async def _is_a_future(receive: Receive) -> object:
    wait = wait_of(receive)
    return {
        "isfuture": asyncio.isfuture(wait),
        "ensured": asyncio.ensure_future(wait) is wait,
        "loop": wait.get_loop() is asyncio.get_running_loop(),
        "done": wait.done(),
        "cancelled": wait.cancelled(),
        "result": raised_by(wait.result),
        "exception": raised_by(wait.exception),
    }


async def _cancelling(receive: Receive) -> object:
    wait = wait_of(receive)
    seen: list[str] = []
    wait.add_done_callback(lambda each: seen.append("called" if each is wait else "another"))
    told = [wait.cancel("why"), wait.cancel()]
    at_once = list(seen)
    await asyncio.sleep(0)
    return {
        "told": told,
        "at_once": at_once,
        "later": seen,
        "cancelled": wait.cancelled(),
        "done": wait.done(),
        "result": raised_by(wait.result),
        "exception": raised_by(wait.exception),
        "without": raised_by(_cancelled(receive).result),
    }


def _cancelled(receive: Receive) -> Any:
    wait = wait_of(receive)
    wait.cancel()
    return wait


async def _late_callback(receive: Receive) -> object:
    wait = _cancelled(receive)
    seen: list[str] = []
    context = contextvars.copy_context()
    context.run(variable.set, "given")
    variable.set("caller's")
    wait.add_done_callback(lambda _: seen.append(variable.get()))
    wait.add_done_callback(lambda _: seen.append(variable.get()), context=context)
    at_once = list(seen)
    await asyncio.sleep(0)
    return {"at_once": at_once, "later": seen}


class Unequal:
    """Raises when compared."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("compared")

    __hash__ = None  # type: ignore[assignment]


async def _removing(receive: Receive) -> object:
    wait = wait_of(receive)
    seen: list[str] = []

    def first(_: object) -> None:
        seen.append("first")

    def second(_: object) -> None:
        seen.append("second")

    for callback in (first, second, first, first):
        wait.add_done_callback(callback)
    removed = [wait.remove_done_callback(first), wait.remove_done_callback(first)]
    broken = raised_by(lambda: wait.remove_done_callback(Unequal()))
    wait.cancel()
    await asyncio.sleep(0)
    return {"removed": removed, "broken": broken, "called": seen}


async def _waiting(receive: Receive) -> object:
    one, two = asyncio.ensure_future(receive()), asyncio.ensure_future(receive())
    done, pending = await asyncio.wait({one, two}, timeout=0.01)
    found: dict[str, object] = {"done": len(done), "pending": len(pending)}
    try:
        await asyncio.wait_for(asyncio.shield(one), 0.01)
    except TimeoutError:
        found["shielded"] = one.cancelled()
    gathered = asyncio.gather(two, return_exceptions=True)
    two.cancel("enough")
    found["gathered"] = [f"{type(each).__name__}{each.args}" for each in await gathered]  # type: ignore[union-attr]
    found["one"] = one.done()
    one.cancel()
    return found


async def _waiting_on_futures(receive: Receive) -> object:
    """The future itself, where a task usually is."""
    found: dict[str, object] = {}
    done, pending = await asyncio.wait({wait_of(receive)}, timeout=0.01)
    found["wait"] = [len(done), len(pending)]
    try:
        await asyncio.wait_for(asyncio.shield(wait_of(receive)), 0.01)
    except TimeoutError:
        found["shield"] = "timed out"
    wait = wait_of(receive)
    gathered = asyncio.gather(wait, asyncio.sleep(0, "slept"), return_exceptions=True)
    wait.cancel("enough")
    found["gather"] = [each if isinstance(each, str) else type(each).__name__ for each in await gathered]
    wait = wait_of(receive)

    async def until() -> str:
        try:
            await wait
        except asyncio.CancelledError as error:
            return f"cancelled{error.args}"
        return "resolved"

    task = asyncio.create_task(until())
    await asyncio.sleep(0)
    wait.cancel("by its future")
    found["await"] = await task
    task = asyncio.create_task(until_cancelled(wait_of(receive)))
    await asyncio.sleep(0)
    task.cancel("by its task")
    found["task"] = await task
    return found


async def until_cancelled(wait: Any) -> str:
    try:
        await wait
    except asyncio.CancelledError as error:
        return f"cancelled{error.args}, its future {wait.cancelled()}"
    return "resolved"


FUTURES = {
    "is-a-future": _is_a_future,
    "cancelling": _cancelling,
    "late-callback": _late_callback,
    "removing": _removing,
    "waiting": _waiting,
    "waiting-on-futures": _waiting_on_futures,
}


@routes.at("resolved")
async def note_how_a_future_is_resolved(scope: Scope, receive: Receive, send: Send) -> None:
    """Waits for the client to leave; tells the callbacks' order, contexts and task, and who called."""
    await read_body(receive)
    name = option(scope, "name")
    loop = asyncio.get_running_loop()
    wait = wait_of(receive)
    order: list[str] = []
    contexts: list[str] = []
    callers: list[str] = []
    through = loop.create_future()
    usual = loop.create_future()
    usual.add_done_callback(lambda _: order.append("asyncio's"))
    usual.add_done_callback(lambda _: through.set_result(None))

    def first(_: object) -> None:
        callers.append(type(getattr(sys._getframe(1).f_locals.get("self"), "_callback", None)).__name__)
        order.append("ours")
        contexts.append(variable.get())
        contexts.append("no task" if asyncio.current_task() is None else "a task")
        usual.set_result(None)

    def failing(_: object) -> None:
        order.append("failing")
        raise ValueError("marked by the test")

    def last(_: object) -> None:
        order.append("ours again")
        contexts.append(variable.get())

    context = contextvars.copy_context()
    context.run(variable.set, "given")
    variable.set("caller's")
    wait.add_done_callback(first, context=context)
    wait.add_done_callback(failing)
    wait.add_done_callback(last)
    routes.note(f"{name}-waits", True)
    await through
    routes.note(f"{name}-order", order)
    routes.note(f"{name}-contexts", contexts)
    routes.note(f"{name}-callers", callers)
    routes.note(f"{name}-result", [wait.done(), wait.cancelled(), wait.result(), wait.exception()])


_break_asyncio()
