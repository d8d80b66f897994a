"""An application that holds its loop in several ways, and says what `bridgehead.diagnostics` has of it.

Run it: `serve health_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import hashlib
import math
import os
import re
import sys
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

from kit import Receive, Routes, Scope, Send, answer, answer_json, option

from bridgehead.admission import Gate
from bridgehead.diagnostics import snapshot

app = Routes()
gate = Gate(3, name="pool")
kept: list[asyncio.Task[None]] = []


def sleep_in_python(seconds: float) -> None:
    time.sleep(seconds)


def sleep_with_the_lock(seconds: float) -> None:
    """A call of C's that keeps Python's lock."""
    if ctypes.PyDLL(None).usleep(int(seconds * 1e6)) != 0:
        raise RuntimeError("somebody has cut a sleep short")


def compute_in_python(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def hash_a_little_again_and_again(seconds: float) -> None:
    """Python code for all that: each of the calls keeps the lock, and is over at once."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        hashlib.sha256(b"x" * 2000).digest()


def add_up_in_c(seconds: float) -> None:
    sum(range(int(seconds * 60e6)))


def match_in_c(seconds: float) -> None:
    """Backtracks 2^n times: each letter more takes twice as long."""
    letters = 18
    while seconds > 0:
        began = time.monotonic()
        re.match(r"(?:a+)+b", "a" * letters)
        took = time.monotonic() - began
        letters += max(1, math.floor(math.log2(seconds / took))) if took < seconds else 0
        seconds = 0 if took >= seconds else seconds


def hash_much(seconds: float) -> None:
    """A call of C's that lets go of Python's lock, and computes."""
    hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", int(seconds * 2e6))


def hash_piece_by_piece(seconds: float) -> None:
    """Calls of C's that let go of Python's lock, and are over before long, as of a file that is read."""
    piece, until = bytes(1 << 20), time.monotonic() + seconds
    while time.monotonic() < until:
        hashlib.sha256(piece).digest()


def compress_piece_by_piece(seconds: float) -> None:
    piece, until = os.urandom(1 << 17), time.monotonic() + seconds
    while time.monotonic() < until:
        zlib.compress(piece)


def read_from_a_pipe(seconds: float) -> None:
    reads, writes = os.pipe()
    threading.Timer(seconds, os.write, (writes, b"x")).start()
    os.read(reads, 1)
    os.close(reads)
    os.close(writes)


def wait_for_a_lock(seconds: float) -> None:
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(seconds, lock.release).start()
    lock.acquire()


def wait_for_another_thread(seconds: float) -> None:
    """Python's lock is kept by a thread that is not the loop's."""
    began = threading.Event()

    def keep() -> None:
        began.set()
        sleep_with_the_lock(seconds)

    keeper = threading.Thread(target=keep)
    keeper.start()
    began.wait()
    while keeper.is_alive():
        pass


def wait_for_another_thread_and_sleep(seconds: float) -> None:
    """Whoever looks has Python's lock when the thread gives it back: in the sleep."""
    began = threading.Event()

    def keep() -> None:
        began.set()
        sleep_with_the_lock(seconds)

    threading.Thread(target=keep).start()
    began.wait()
    time.sleep(seconds / 5)


HOLDS = {
    "python": sleep_in_python,
    "lock": sleep_with_the_lock,
    "compute": compute_in_python,
    "little-hashes": hash_a_little_again_and_again,
    "sum": add_up_in_c,
    "match": match_in_c,
    "hash": hash_much,
    "pieces": hash_piece_by_piece,
    "compress": compress_piece_by_piece,
    "read": read_from_a_pipe,
    "wait": wait_for_a_lock,
    "thread": wait_for_another_thread,
    "thread-before": wait_for_another_thread_and_sleep,
}


@app.at("hold")
async def hold(scope: Scope, receive: Receive, send: Send) -> None:
    """Hold the loop for `?seconds=`: in the first step, or resumed by asyncio with `?later=`."""
    if option(scope, "later"):
        await asyncio.sleep(float(option(scope, "later")))
    if option(scope, "route"):
        scope["route"] = SimpleNamespace(path=option(scope, "route"))
    HOLDS[option(scope, "how", "python")](float(option(scope, "seconds")))
    await answer(send, b"held")


@app.at("read-and-hold")
async def read_and_hold(scope: Scope, receive: Receive, send: Send) -> None:
    """Hold the loop for `?seconds=` in the step in which the last of the body has come."""
    print("reads", file=sys.stderr, flush=True)
    while (await receive())["more_body"]:
        pass
    HOLDS[option(scope, "how", "python")](float(option(scope, "seconds")))
    await answer(send, b"held")


@app.at("hold-in-a-task")
async def hold_in_a_task(scope: Scope, receive: Receive, send: Send) -> None:
    """As middleware has it that runs what is behind it in a task of its own."""

    async def goes_on() -> None:
        await hold_for_another(scope, receive, send)

    await asyncio.create_task(goes_on())


async def hold_for_another(scope: Scope, receive: Receive, send: Send) -> None:
    time.sleep(float(option(scope, "seconds")))
    await answer(send, b"held")


@app.at("hold-in-children")
async def hold_in_children(scope: Scope, receive: Receive, send: Send) -> None:
    """As a handler has it that starts tasks for parts of its work: `?how=group` or `gather`."""
    seconds = float(option(scope, "seconds"))
    if option(scope, "how") == "group":
        async with asyncio.TaskGroup() as group:
            group.create_task(hold_in_a_group(seconds))
    else:
        await asyncio.gather(hold_as_one_of_several(seconds), asyncio.sleep(0))
    await answer(send, b"held")


async def hold_in_a_group(seconds: float) -> None:
    time.sleep(seconds)


async def hold_as_one_of_several(seconds: float) -> None:
    await asyncio.sleep(0)
    time.sleep(seconds)


@app.at("raise")
async def raise_to_a_power(scope: Scope, receive: Receive, send: Send) -> None:
    """Hold the loop with the lock, and call nothing afterwards: the lock is offered to nobody."""
    scope["endpoint"] = raise_to_a_power
    number = int(option(scope, "by"))
    await answer(send)
    _ = 7**number


async def sleep_and_hold(after: float, seconds: float) -> None:
    await asyncio.sleep(after)
    hold_alone(seconds)


def hold_alone(seconds: float) -> None:
    time.sleep(seconds)


@app.at("background")
async def hold_later(scope: Scope, receive: Receive, send: Send) -> None:
    """Hold the loop for `?seconds=` when no request runs any more, `?after=` a while."""
    await asyncio.sleep(0)
    after, seconds = float(option(scope, "after", "1.0")), float(option(scope, "seconds"))
    kept.append(asyncio.create_task(sleep_and_hold(after, seconds)))
    await answer(send)


@app.at("call-soon")
async def call_back_soon(scope: Scope, receive: Receive, send: Send) -> None:
    """Hold the loop for `?seconds=` by a callback that is no Python code, of one kind or another."""
    seconds, lock = float(option(scope, "seconds")), threading.Lock()
    lock.acquire()
    kinds: dict[str, Callable[[], object]] = {
        "sleep": partial(time.sleep, seconds),
        "lock": partial(lock.acquire, timeout=seconds),
    }
    asyncio.get_running_loop().call_soon(kinds[option(scope, "kind")])
    await answer(send)


@app.at("leak")
async def leave_tasks(scope: Scope, receive: Receive, send: Send) -> None:
    """`?count=` of them, for `?seconds=`."""
    seconds = float(option(scope, "seconds"))
    kept.extend(asyncio.create_task(asyncio.sleep(seconds)) for _ in range(int(option(scope, "count"))))
    await answer(send)


@app.at("wait")
async def wait(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(float(option(scope, "seconds")))
    await answer(send, b"waited")


@app.at("snapshot")
async def show(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, dataclasses.asdict(snapshot()))


@app.at("until-queued")
async def show_those_who_wait(scope: Scope, receive: Receive, send: Send) -> None:
    print("has the permit", file=sys.stderr, flush=True)
    while (shown := snapshot()).queued < int(option(scope, "count")):
        await asyncio.sleep(0.001)
    await answer_json(send, dataclasses.asdict(shown))


@app.at("thread")
async def work_in_a_thread(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.to_thread(int)
    await answer(send, b"worked")


class OfItsOwnKind(ThreadPoolExecutor):
    """Has none of what is looked at, and does it at once."""

    def __init__(self) -> None:
        pass

    def submit(self, work: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*arguments, **keywords))
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        pass


@app.at("replace-threads")
async def replace_threads(scope: Scope, receive: Receive, send: Send) -> None:
    """By `?most=` threads; 0: by an executor of another kind."""
    most = int(option(scope, "most"))
    executor = ThreadPoolExecutor(most) if most else OfItsOwnKind()
    asyncio.get_running_loop().set_default_executor(executor)
    await asyncio.to_thread(int)
    await answer(send)


@app.at("park")
async def park(scope: Scope, receive: Receive, send: Send) -> None:
    app.note("parked", True)
    await app.wait_bell(option(scope, "until"))
    await answer(send, b"rung")


@app.at("forget")
async def forget_to_await(scope: Scope, receive: Receive, send: Send) -> None:
    async def nobody_waits() -> None:
        pass

    nobody_waits()  # type: ignore[unused-coroutine]
    await answer(send)
