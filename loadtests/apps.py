"""The applications that are measured; each answers `hello`.

Not examples: they do as little as ASGI allows, so that what is left is the server's.
"""

import asyncio
import json
import os
import time

PAUSE = 0.01  # seconds: what `ticks` sleeps for, again and again

START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/plain"), (b"content-length", b"5")],
}
BODY = {"type": "http.response.body", "body": b"hello"}


async def hello(scope, receive, send):
    """Answer without looking at the request."""
    if scope["type"] == "http":
        await send(START)
        await send(BODY)
    else:
        await lifespan(receive, send)


async def reads(scope, receive, send):
    """Await the body first, as every framework does when a handler wants it."""
    if scope["type"] == "http":
        await receive()
        await send(START)
        await send(BODY)
    else:
        await lifespan(receive, send)


async def asks(scope, receive, send):
    """Ask another server first, on a kept connection: one line there, one line back."""
    if scope["type"] == "http":
        connection = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", UPSTREAM)
        reader, writer = connection
        writer.write(b"hello?\n")
        await reader.readline()
        idle.append(connection)
        await send(START)
        await send(BODY)
    else:
        await lifespan(receive, send)


UPSTREAM = int(os.environ.get("UPSTREAM_PORT", "0"))
idle = []


async def ticks(scope, receive, send):
    """Answer at once, beside a task that sleeps; `/late` tells by how many seconds each wake was late."""
    if scope["type"] == "lifespan":
        ticking = asyncio.create_task(tick())
        await lifespan(receive, send)
        ticking.cancel()
        return
    body = BODY["body"]
    if scope["path"] == "/late":
        body = json.dumps(late).encode()
        late.clear()
    await send({**START, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({**BODY, "body": body})


async def tick():
    """Notes how late each wake is."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(PAUSE)
        late.append(time.perf_counter() - began - PAUSE)


late = []


async def lifespan(receive, send):
    """Nothing to start, nothing to stop."""
    for half in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{half}.complete"})
