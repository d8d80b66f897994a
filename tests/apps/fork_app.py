"""Handlers that fork, for the tests of what parent and child must not do to each other."""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import time
from concurrent.futures import ProcessPoolExecutor

from kit import Receive, Routes, Scope, Send, answer_json, option

import bridgehead

app = routes = Routes()
fork = multiprocessing.get_context("fork")


@routes.at("fork")
async def fork_a_sleeper(scope: Scope, receive: Receive, send: Send) -> None:
    """The child sleeps in the middle of the handler, with everything it inherited open."""
    child = os.fork()
    if child == 0:
        time.sleep(120)
        os._exit(7)
    await answer_json(send, child)


@routes.at("fork-and-wait")
async def fork_a_sleeper_that_says_so(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers once the child is one: what is done at a fork is done there too."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"here")
        time.sleep(120)
        os._exit(7)
    os.read(reading, 4)
    os.close(reading)
    os.close(writing)
    await answer_json(send, child)


@routes.at("fork-and-exit")
async def fork_a_child_that_works_and_exits(scope: Scope, receive: Receive, send: Send) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.write(writing, b"from the child")
        os._exit(4)
    os.close(writing)
    said = os.read(reading, 100)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    await answer_json(send, [said.decode(), os.waitstatus_to_exitcode(status)])


@routes.at("fork-by-subprocess")
async def run_a_program(scope: Scope, receive: Receive, send: Send) -> None:
    process = await asyncio.create_subprocess_exec("true")
    await answer_json(send, await process.wait())


@routes.at("wait")
async def wait_for_a_child(scope: Scope, receive: Receive, send: Send) -> None:
    child = int(option(scope, "pid"))
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    await answer_json(send, os.waitstatus_to_exitcode(status))


def compute() -> int:
    return sum(range(10))


def compute_in_a_loop() -> None:
    async def main() -> int:
        await asyncio.sleep(0.01)
        return 9

    raise SystemExit(asyncio.run(main()))


def sleep_long() -> None:
    time.sleep(120)


def show_handlers() -> None:
    default = [
        signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        signal.SIGTERM not in signal.pthread_sigmask(0, ()),
    ]
    raise SystemExit(0 if all(default) else 1)


def fork_with_files_open() -> None:
    """Opens files where the parent has its sockets, and sees whether its own child has them."""
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]
    device = os.stat("/dev/null").st_rdev
    child = os.fork()
    if child == 0:
        lost = 0
        for each in files:
            try:
                lost += os.fstat(each).st_rdev != device
            except OSError:
                lost += 1
        os._exit(lost)
    _, status = os.waitpid(child, 0)
    raise SystemExit(os.waitstatus_to_exitcode(status))


TARGETS = {
    "loop": compute_in_a_loop,
    "sleep": sleep_long,
    "handlers": show_handlers,
    "forks": fork_with_files_open,
}


@routes.at("process")
async def start_a_process(scope: Scope, receive: Receive, send: Send) -> None:
    process = fork.Process(target=TARGETS[option(scope, "target")])
    process.start()
    if option(scope, "join") == "yes":
        await asyncio.to_thread(process.join, 20)
    await answer_json(send, {"pid": process.pid, "code": process.exitcode})


def serve(listener: socket.socket, loop: str) -> None:
    config = bridgehead.Config("fork_app:app", loop=loop, log_level="warning", access_log=False)
    bridgehead.Server(config).run(sockets=[listener])


@routes.at("server")
async def start_a_server(scope: Scope, receive: Receive, send: Send) -> None:
    """In a child, on a loop of the same kind; says where it is reached."""
    loop = "uvloop" if type(asyncio.get_running_loop()).__module__.startswith("uvloop") else "asyncio"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = fork.Process(target=serve, args=(listener, loop))
        process.start()
        await answer_json(send, {"pid": process.pid, "port": listener.getsockname()[1]})


@routes.at("pool")
async def use_a_pool(scope: Scope, receive: Receive, send: Send) -> None:
    with ProcessPoolExecutor(2, mp_context=fork) as pool:
        loop = asyncio.get_running_loop()
        results = await asyncio.gather(*(loop.run_in_executor(pool, compute) for _ in range(4)))
    await answer_json(send, results)


@routes.at("fork-and-leave")
async def fork_a_child_that_leaves(scope: Scope, receive: Receive, send: Send) -> None:
    end = option(scope, "end")
    child = os.fork()
    if child == 0:
        if end == "exit":
            raise SystemExit(5)
        return
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    await answer_json(send, os.waitstatus_to_exitcode(status))


async def forks_in_its_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        child = os.fork()
        if child == 0:
            time.sleep(120)
            os._exit(0)
        scope["state"]["child"] = child
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await answer_json(send, scope["state"]["child"])
