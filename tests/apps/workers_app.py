"""Says which process answers, and does to it what it is asked for.

`SEATS` names a folder with as many seats as files: a worker that finds none dies while it starts.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from typing import IO, Any

SEATS = os.environ.get("SEATS")
TAKEN: list[IO[str]] = []

print(f"app: imported by {os.getpid()}", file=sys.stderr, flush=True)


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
    await receive()
    print(f"app: shutdown of {os.getpid()}", file=sys.stderr, flush=True)
    await send({"type": "lifespan.shutdown.complete"})


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    path = scope["path"]
    if path == "/die":
        os.kill(os.getpid(), signal.SIGKILL)
    if path == "/exit":
        os._exit(3)
    if path == "/block":
        print(f"app: {os.getpid()} is blocked", file=sys.stderr, flush=True)
        while not os.path.exists(os.environ["RELEASE"]):
            time.sleep(0.01)
    if path == "/keep-the-lock":
        print(f"app: {os.getpid()} keeps the lock", file=sys.stderr, flush=True)
        # Python's; until somebody has opened the pipe to write.
        ctypes.PyDLL(None).open(os.environb[b"PIPE"], os.O_RDONLY)
    if path == "/burn":
        print(f"app: {os.getpid()} burns", file=sys.stderr, flush=True)
        while not os.path.exists(os.environ["RELEASE"]):
            sum(range(100_000))
            await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while path == "/stream":
        print("app: streams", file=sys.stderr, flush=True)
        await send({"type": "http.response.body", "body": b"more", "more_body": True})
        await receive()
        await receive()
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
