"""The applications that are measured, without a framework; most answer `hello`.

Not examples: they do as little as ASGI allows, so that what is left is the server's.
"""

import asyncio
import json
import os
import time

from anyio import to_thread

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


async def echo(scope, receive, send):
    """Read the whole body, and send it back."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"".join(parts)
    await send({**START, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def messages(scope, receive, send):
    """Take a WebSocket, and send each message back."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


def sized(size):
    """An application that answers so many bytes."""
    start = {**START, "headers": [(b"content-length", b"%d" % size)]}
    body = {"type": "http.response.body", "body": b"x" * size}

    async def app(scope, receive, send):
        if scope["type"] == "http":
            await send(start)
            await send(body)
        else:
            await lifespan(receive, send)

    return app


body_10k, body_1m = sized(10_240), sized(1_048_576)


async def streams(scope, receive, send):
    """Send 100 pieces of 1 KB, of a length that is not declared."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    await send({**START, "headers": [(b"content-type", b"text/plain")]})
    for _ in range(100):
        await send(PIECE)
    await send({"type": "http.response.body", "body": b""})


PIECE = {"type": "http.response.body", "body": b"x" * 1024, "more_body": True}


def before_hello(work):
    """An application that does `work`, and answers then."""

    async def app(scope, receive, send):
        if scope["type"] == "http":
            await work()
            await send(START)
            await send(BODY)
        else:
            await lifespan(receive, send)

    return app


async def sleep_10ms():
    """As a handler that waits for something."""
    await asyncio.sleep(0.01)


async def yield_10_times():
    """Ten turns of the loop."""
    for _ in range(10):
        await asyncio.sleep(0)


async def call_20_coroutines():
    """Twenty awaits that do not suspend, as layers of middleware have them."""
    for _ in range(20):
        await nothing()


async def nothing():
    """A coroutine that is over at once."""


async def go_to_a_thread():
    """As Starlette runs handlers that are no coroutines."""
    await to_thread.run_sync(int)


sleeps, yields = before_hello(sleep_10ms), before_hello(yield_10_times)
coroutines, threads = before_hello(call_20_coroutines), before_hello(go_to_a_thread)


async def lifespan(receive, send):
    """Nothing to start, nothing to stop."""
    for half in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{half}.complete"})
