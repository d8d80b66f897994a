"""Says which process answers, and does to it what it is asked for.

`SEATS` names a folder with as many seats as files: a worker that finds none dies while it starts.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

SEATS = os.environ.get("SEATS")
TAKEN: list[IO[str]] = []


def say(line: str) -> None:
    # One write: lines of several processes must not mix.
    os.write(2, f"app: {line}\n".encode())


ENDS: dict[str, Callable[[], object]] = {
    "/exit": lambda: os._exit(3),
    "/exit-well": lambda: os._exit(0),
    "/abort": os.abort,
    "/fault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
}

say(f"imported by {os.getpid()}")


def sits_down(folder: str) -> bool:
    for path in sorted(Path(folder).iterdir()):
        seat = path.open()
        try:
            fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            seat.close()
        else:
            TAKEN.append(seat)
            return True
    return False


async def lifespan(receive: Any, send: Any) -> None:
    await receive()
    if SEATS is not None and not sits_down(SEATS):
        os._exit(9)
    if os.environ.get("REFUSES"):
        await send({"type": "lifespan.startup.failed", "message": "not today"})
        return
    await send({"type": "lifespan.startup.complete"})
    if os.environ.get("SHORT_LIVED"):
        asyncio.get_running_loop().call_later(0.1, os._exit, 9)
    await receive()
    say(f"shutdown of {os.getpid()}")
    await send({"type": "lifespan.shutdown.complete"})


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    path = scope["path"]
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": str(os.getpid())})
        ended = await receive()
        say(f"{os.getpid()} was left by {ended['code']}")
        return
    if path == "/die":
        os.kill(os.getpid(), signal.SIGKILL)
    if path in ENDS:
        ENDS[path]()
    if path == "/block":
        say(f"{os.getpid()} is blocked")
        while not os.path.exists(os.environ["RELEASE"]):
            time.sleep(0.01)
    if path == "/keep-the-lock":
        say(f"{os.getpid()} keeps the lock")
        # Python's; until somebody has opened the pipe to write.
        ctypes.PyDLL(None).open(os.environb[b"PIPE"], os.O_RDONLY)
    if path == "/burn":
        say(f"{os.getpid()} burns")
        while not os.path.exists(os.environ["RELEASE"]):
            sum(range(100_000))
            await asyncio.sleep(0)
    if path == "/wait":
        say(f"{os.getpid()} waits")
        while not os.path.exists(os.environ["RELEASE"]):
            await asyncio.sleep(0.01)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while path == "/stream":
        say(f"streams by {os.getpid()}")
        await send({"type": "http.response.body", "body": b"more", "more_body": True})
        await receive()
        await receive()
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
