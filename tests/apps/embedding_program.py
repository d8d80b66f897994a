"""`python -m embedding_program HOW …`: a program that embeds a server, and says how it ended.

Not a server: `bridgehead` is. What the harness adds (`--port 0`) is not read.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import left_app
from lifecycle_app import app, say

import bridgehead

LOOP: dict[str, Any] = json.loads(os.environ.get("LOOP", "{}"))


def server(**options: Any) -> bridgehead.Server:
    return bridgehead.Server(bridgehead.Config(app, port=0, **LOOP, **options))


def by_run() -> None:
    bridgehead.run(app, port=0, **LOOP)


def by_server_run() -> None:
    server().run()


def leaving_by_run() -> None:
    bridgehead.run(left_app.app, port=0, **LOOP)


def leaving_by_server_run() -> None:
    bridgehead.Server(bridgehead.Config(left_app.app, port=0, **LOOP)).run()


def by_serve() -> None:
    asyncio.run(server().serve())


def by_serve_on_uvloop() -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server().serve())


def by_thread() -> None:
    """The main thread waits, and has Python's usual handlers."""
    thread = threading.Thread(target=server().run, daemon=True)
    thread.start()
    thread.join()


def with_own_handlers() -> None:
    def heard(number: int, _: FrameType | None) -> None:
        say(f"own handler got {signal.Signals(number).name}")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, heard)
    server().run()
    say(f"handlers are back: {signal.getsignal(signal.SIGTERM) is heard}")


def by_serve_with_own_handlers() -> None:
    def heard(number: int, _: FrameType | None) -> None:
        say(f"own handler got {signal.Signals(number).name}")

    async def main() -> None:
        await server().serve()
        say("serve() has ended")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, heard)
    asyncio.run(main())


def two_in_one_loop() -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            first, second = server(), server()
            group.create_task(first.serve())
            while not first.started:
                await asyncio.sleep(0.001)
            group.create_task(second.serve())

    asyncio.run(main())


def three_that_end_as_they_began() -> None:
    """A signal ends whoever is left; then the program's handler is back, and told."""

    def heard(number: int, _: FrameType | None) -> None:
        say(f"own handler got {signal.Signals(number).name}")

    async def main() -> None:
        servers = [server(), server(), server()]
        tasks = []
        for each in servers:
            tasks.append(asyncio.create_task(each.serve()))
            while not each.started:
                await asyncio.sleep(0.001)
        for each, task in list(zip(servers, tasks, strict=True))[:2]:
            each.should_exit = True
            await task
        say("one is left")
        await tasks[2]

    signal.signal(signal.SIGTERM, heard)
    asyncio.run(main())
    say(f"handlers are back: {signal.getsignal(signal.SIGTERM) is heard}")


def with_a_wrong_target() -> None:
    bridgehead.run("no_such_module:app", port=0)


def with_an_inner_server() -> None:
    """A program of two: the outer's lifespan serves the inner."""
    bridgehead.run(outer, port=0, **LOOP)


async def outer(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "lifespan":
        await app(scope, receive, send)
        return
    await receive()
    inner = server()
    task = asyncio.create_task(inner.serve())
    while not inner.started:
        await asyncio.sleep(0.001)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    inner.should_exit = True
    await task
    say("inner ended")
    await send({"type": "lifespan.shutdown.complete"})


def main() -> None:
    how: Callable[[], None] = globals()[sys.argv[1]]
    try:
        how()
    except KeyboardInterrupt:
        say("KeyboardInterrupt")
        sys.exit(130)
    say("returned")


if __name__ == "__main__":
    main()
