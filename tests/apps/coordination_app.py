"""An application whose workers coordinate by grelmicro: locks, a scheduled task, a leader.

Run it: `COORDINATION=sqlite:/tmp/locks.db serve coordination_app:app --workers 2`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from anyio import WouldBlock
from grelmicro.sync import LeaderElection, Lock, TaskLock, use_backend
from grelmicro.sync.abc import SyncBackend
from grelmicro.task import TaskManager
from kit import Receive, Routes, Scope, Send, answer, answer_json

routes = Routes()
FOLDER = Path(os.environ.get("COORDINATION_FOLDER", "."))
LEASE = 3.0


def chosen() -> SyncBackend:
    kind, _, place = os.environ["COORDINATION"].partition(":")
    if kind == "sqlite":
        from grelmicro.sync.sqlite import SQLiteSyncBackend

        class OneAtATime(SQLiteSyncBackend):
            """All tasks share its connection, on which statements must not overlap."""

            turn = asyncio.Lock()

            async def acquire(self, **lock: Any) -> bool:
                async with self.turn:
                    return await super().acquire(**lock)

            async def release(self, **lock: Any) -> bool:
                async with self.turn:
                    return await super().release(**lock)

        return OneAtATime(place)
    if kind == "postgresql":
        from grelmicro.sync.postgres import PostgresSyncBackend

        return PostgresSyncBackend(os.environ["COORDINATION"])
    from grelmicro.sync.redis import RedisSyncBackend

    return RedisSyncBackend(os.environ["COORDINATION"])


backend = chosen()
use_backend(backend)
lock = Lock("counter", lease_duration=30, retry_interval=0.01)
# Of each test its own, since it outlives whoever has done the task.
task_lock = TaskLock(f"report_{FOLDER.name}", min_lock_seconds=600, max_lock_seconds=600)
# With its backend by hand: what it does not know by itself, it does not release at the end.
leader = LeaderElection(
    "main",
    backend=backend,
    lease_duration=LEASE,
    renew_deadline=2.0,
    retry_interval=0.2,
    backend_timeout=1.5,
)
tasks = TaskManager(tasks=[leader])


@tasks.interval(seconds=0.1, sync=leader.guard())
async def note_who_leads() -> None:
    """The one periodic job: whoever leads says so."""
    with (FOLDER / "led").open("a") as led:
        led.write(f"{os.getpid()}\n")


async def lifespan(receive: Receive, send: Send) -> None:
    async with AsyncExitStack() as stack:
        await receive()
        await stack.enter_async_context(backend)
        await stack.enter_async_context(tasks)
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
    else:
        await routes(scope, receive, send)


@routes.at("who")
async def say_who(scope: Scope, receive: Receive, send: Send) -> None:
    workers: dict[str, Any] = {
        "lock": lock.config.worker,
        "task": task_lock.config.worker,
        "leader": leader.config.worker,
    }
    await answer_json(send, {"pid": os.getpid(), "leads": leader.is_leader(), "workers": workers})


@routes.at("count")
async def count(scope: Scope, receive: Receive, send: Send) -> None:
    """Add one, by a read and a write between which others would come, were there no lock."""
    counter = FOLDER / "counter"
    async with lock:
        before = int(counter.read_text()) if counter.exists() else 0
        await asyncio.sleep(0.002)
        counter.write_text(str(before + 1))
    await answer_json(send, {"pid": os.getpid()})


@routes.at("report")
async def report(scope: Scope, receive: Receive, send: Send) -> None:
    """What is to be done by one worker, and not by another right after it."""
    try:
        async with task_lock:
            await answer_json(send, {"pid": os.getpid(), "report": "done"})
    except WouldBlock:
        await answer_json(send, {"pid": os.getpid(), "report": "skipped"})


@routes.at("keep")
async def keep_the_lock(scope: Scope, receive: Receive, send: Send) -> None:
    """Keep it until the request is cancelled."""
    async with lock:
        await answer(send, b"kept")
        await asyncio.sleep(600)
