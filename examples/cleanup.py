"""Cancellation that cleans up: a job that its client or a stop cuts off gives back what it holds.

Run it: serve examples/cleanup.py

`curl localhost:8000/` locks a row for a minute. Stop curl with Ctrl+C, or the server, whose stop first gives
the request its grace: the row is unlocked either way, and the server says so. `curl localhost:8000/locked`
shows what is locked.
"""

import asyncio

locked = set()


async def unlock(row):
    await asyncio.sleep(0.01)  # a round trip to the database
    locked.discard(row)
    print(f"unlocked {row}", flush=True)


async def work_on(row):
    locked.add(row)
    try:
        await asyncio.sleep(60)
    finally:
        # Shielded: a second cancellation must not cut off the cleaning up. The first goes on after it.
        await asyncio.shield(asyncio.create_task(unlock(row)))


async def gone(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


async def answer(send, body):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    if scope["path"] == "/locked":
        await answer(send, ", ".join(sorted(locked)).encode())
        return
    work, leaves = asyncio.create_task(work_on("row 7")), asyncio.create_task(gone(receive))
    try:
        await asyncio.wait({work, leaves}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await answer(send, b"done")
    finally:
        work.cancel()
        leaves.cancel()
        await asyncio.wait({work, leaves})
