"""Applications for the tests of start, signals and stop. What they do they say on stderr.

Run one of them: `serve lifecycle_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from pathlib import Path
from typing import Any, NoReturn

from kit import App, Receive, Routes, Scope, Send, answer, answer_json, more, option, plain_lifespan, start

routes = Routes()


def say(line: str) -> None:
    # One write: lines of threads and children must not mix.
    os.write(2, f"app: {line}\n".encode())


async def talking_lifespan(receive: Receive, send: Send) -> None:
    assert (await receive())["type"] == "lifespan.startup"
    say("startup")
    await send({"type": "lifespan.startup.complete"})
    assert (await receive())["type"] == "lifespan.shutdown"
    say("shutdown")
    await send({"type": "lifespan.shutdown.complete"})


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await talking_lifespan(receive, send)
    else:
        await routes(scope, receive, send)


@routes.at("talk")
async def talk(scope: Scope, receive: Receive, send: Send) -> None:
    """A WebSocket that repeats what it is told."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})


@routes.at("sleep")
async def sleep(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers after `seconds`; says how it came to its end."""
    name = option(scope, "name")
    say(f"{name} began")
    try:
        await asyncio.sleep(float(option(scope, "seconds")))
        await answer(send, b"slept")
        say(f"{name} answered")
    except asyncio.CancelledError:
        say(f"{name} cancelled")
        raise
    finally:
        say(f"{name} finally")


@routes.at("stubborn")
async def refuse_to_be_cancelled(scope: Scope, receive: Receive, send: Send) -> None:
    say("stubborn began")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            say("stubborn refuses")


@routes.at("stream")
async def stream_for_ever(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        await start(send)
        while True:
            await more(send, b"s" * int(option(scope, "size", "10")))
            await asyncio.sleep(float(option(scope, "pause", "0.01")))
    finally:
        say("stream finally")


@routes.at("background")
async def work_after_the_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"answered")
    await asyncio.sleep(1)
    say("background done")


@routes.at("spawn")
async def leave_a_task_behind(scope: Scope, receive: Receive, send: Send) -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            say("left task finally")

    routes.note("spawned", True)
    left_behind.append(asyncio.create_task(work()))
    await answer(send, b"spawned")


left_behind: list[asyncio.Task[None]] = []


@routes.at("block")
async def block_the_loop(scope: Scope, receive: Receive, send: Send) -> None:
    say("block began")
    time.sleep(float(option(scope, "seconds")))
    say("block ended")
    await answer(send, b"blocked")


@routes.at("spin")
async def spin_the_loop(scope: Scope, receive: Receive, send: Send) -> None:
    """Busy in Python: where a `KeyboardInterrupt` would strike."""
    say("spin began")
    end = time.monotonic() + float(option(scope, "seconds"))
    while time.monotonic() < end:
        sum(range(100))
    await answer(send, b"spun")


def server_is_ending() -> bool:
    """As sse-starlette asks when it has not found uvicorn."""
    handler: Any = signal.getsignal(signal.SIGTERM)
    ending: bool = handler.__self__.should_exit
    return ending


@routes.at("handler")
async def show_the_handlers_server(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, server_is_ending())


@routes.at("watch")
async def watch_the_handlers_server(scope: Scope, receive: Receive, send: Send) -> None:
    say("watch began")
    while not server_is_ending():
        await asyncio.sleep(0.01)
    await answer(send, b"ending")


@routes.at("ledger")
async def write_the_ledger(scope: Scope, receive: Receive, send: Send) -> None:
    """Notes on disk that it ran."""
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(option(scope, "id") + "\n")
    await asyncio.sleep(0.002)
    await answer(send, option(scope, "id").encode())


# --- lifespans


async def without_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http", f"no {scope['type']} here"
    await routes(scope, receive, send)


async def returns_from_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await routes(scope, receive, send)


async def shows_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        say(f"scope {dict(scope)!r}")
        scope["state"]["seen"] = True
        await talking_lifespan(receive, send)
    else:
        await answer_json(send, "state" in scope and dict(scope["state"]))


async def sets_a_task_factory_that_refuses(scope: Scope, receive: Receive, send: Send) -> None:
    def refuse(loop: Any, coro: Any, **options: Any) -> asyncio.Task[Any]:
        if coro.__name__ == "answer":  # a request
            return asyncio.Task(coro, loop=loop, **options)
        coro.close()
        raise RuntimeError("no tasks here")

    if scope["type"] == "lifespan":
        asyncio.get_running_loop().set_task_factory(refuse)
        await talking_lifespan(receive, send)
        return
    await answer(send, b"hello")


async def fails_at_startup(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "the database is not there\x1b[2J\nérr"})


async def fails_without_a_message(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.failed"})


async def raises_at_startup(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        raise RuntimeError("raised at startup")
    await routes(scope, receive, send)


async def hangs_at_startup(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        say("startup hangs")
        try:
            await asyncio.sleep(600)
        finally:
            say("startup finally")


async def starts_slowly(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await asyncio.sleep(0.5)
        await talking_lifespan(receive, send)
    else:
        await routes(scope, receive, send)


async def fails_at_shutdown(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "lifespan":
        await routes(scope, receive, send)
        return
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.failed", "message": "could not flush"})


def raises_in_lifespan(error: BaseException, *, after: str) -> App:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await routes(scope, receive, send)
            return
        await receive()
        if after != "startup":
            await send({"type": "lifespan.startup.complete"})
        if after == "serving":
            await asyncio.sleep(0.01)
        elif after != "startup":
            await receive()
        if after == "everything":
            await send({"type": "lifespan.shutdown.complete"})
        raise error

    return application


raises_at_shutdown = raises_in_lifespan(RuntimeError("raised at shutdown"), after="shutdown")
raises_while_serving = raises_in_lifespan(RuntimeError("raised while serving"), after="serving")
raises_at_last = raises_in_lifespan(RuntimeError("raised at last"), after="everything")
exits_at_shutdown = raises_in_lifespan(SystemExit(4), after="shutdown")
exits_at_startup = raises_in_lifespan(SystemExit(4), after="startup")
exits_with_words_at_startup = raises_in_lifespan(SystemExit("no database"), after="startup")
interrupts_at_startup = raises_in_lifespan(KeyboardInterrupt(), after="startup")


async def hangs_at_shutdown(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "lifespan":
        await routes(scope, receive, send)
        return
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    say("shutdown hangs")
    await asyncio.sleep(600)


async def ends_after_startup(scope: Scope, receive: Receive, send: Send) -> None:
    """Returns when it has started, as a lifespan without a shutdown part does."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
    else:
        await routes(scope, receive, send)


async def misuses_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "lifespan":
        await routes(scope, receive, send)
        return
    await receive()
    wrong: list[Any] = [
        {"type": "http.response.start", "status": 200},
        {"type": "nonsense"},
        None,
        {},
        {"type": 5},
        {"type": "lifespan.startup.failed", "message": 5},
    ]
    for message in wrong:
        try:
            await send(message)
        except Exception as error:
            say(f"misuse {type(error).__name__}: {error}")
    await send({"type": "lifespan.startup.complete"})
    try:
        await send({"type": "lifespan.startup.complete"})
    except Exception as error:
        say(f"misuse {type(error).__name__}: {error}")
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


# --- signal handlers of the application's own


def install(where: str) -> None:
    def handle(number: int, frame: object) -> None:
        say(f"{where} handler got {signal.Signals(number).name}")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def install_what_exits() -> None:
    def leave(number: int, frame: object) -> NoReturn:
        say(f"leaves by {signal.Signals(number).name}")
        raise SystemExit(5)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)


class LeavesWhenTold(logging.Filter):
    """Of a log, and ends the process by a line of our own about a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        if "without starting" in record.getMessage():
            say("leaves by a filter")
            raise SystemExit(5)
        return True


@routes.at("no-answer")
async def give_no_answer(scope: Scope, receive: Receive, send: Send) -> None:
    if option(scope, "after") == "body":
        say("reads")
        while (await receive()).get("more_body"):
            pass


def with_lifespan(at_startup: Any) -> App:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            at_startup()
            await talking_lifespan(receive, send)
        else:
            await routes(scope, receive, send)

    return application


def install_on_loop() -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, say, f"loop handler got {number.name}")


def install_user_handlers() -> None:
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: say(f"user handler got {signal.Signals(number).name}"))


def install_user_handler_on_loop() -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, say, "loop got SIGUSR1")


def factory_with_handlers() -> App:
    """Installs its handlers when it is loaded, as a module does at import."""
    install("import")
    return app


class Raises:
    """A handler that is an object."""

    def __call__(self, number: int, _frame: object) -> None:
        say(f"raises at {signal.Signals(number).name}")
        raise ValueError("of a signal handler")


def install_what_raises() -> None:
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, Raises())


raising_handlers = with_lifespan(install_what_raises)
lifespan_handlers = with_lifespan(lambda: install("lifespan"))
loop_handlers = with_lifespan(install_on_loop)
exiting_handlers = with_lifespan(install_what_exits)
exiting_filter = with_lifespan(lambda: logging.getLogger("bridgehead.error").addFilter(LeavesWhenTold()))
user_handlers = with_lifespan(install_user_handlers)
loop_user_handler = with_lifespan(install_user_handler_on_loop)


@routes.at("loop-handler-for-a-moment")
async def have_a_loop_handler_for_a_moment(scope: Scope, receive: Receive, send: Send) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, say, "loop got SIGWINCH")
    await answer_json(send, {"removed": loop.remove_signal_handler(signal.SIGWINCH)})


@routes.at("debug-once-late")
async def switch_debug_mode_on_once_late(scope: Scope, receive: Receive, send: Send) -> None:
    """In the step that the server's own deadline leads to."""
    while (await receive())["type"] != "http.disconnect":
        pass
    asyncio.get_running_loop().set_debug(True)
    say("debugs")


@routes.at("stop-the-loop")
async def stop_the_loop(scope: Scope, receive: Receive, send: Send) -> None:
    asyncio.get_running_loop().stop()
    await answer_json(send, None)


@routes.at("handlers")
async def show_handlers(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, {"interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler})


async def quiet(scope: Scope, receive: Receive, send: Send) -> None:
    """Says nothing at all."""
    if scope["type"] == "lifespan":
        await plain_lifespan(receive, send)
    else:
        await routes(scope, receive, send)


def ignores_interrupts() -> App:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return app


async def stops_slowly(scope: Scope, receive: Receive, send: Send) -> None:
    """Its handlers refuse to be cancelled, and so does its lifespan."""
    if scope["type"] != "lifespan":
        await routes(scope, receive, send)
        return
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    say("shutdown hangs")
    await refuse_to_be_cancelled(scope, receive, send)


async def ends_in_a_while(scope: Scope, receive: Receive, send: Send) -> None:
    """Its shutdown takes longer than a lifespan's part of two seconds."""
    if scope["type"] != "lifespan":
        await routes(scope, receive, send)
        return
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.sleep(1)
    say("shutdown took a while")
    await send({"type": "lifespan.shutdown.complete"})
