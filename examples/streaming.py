"""An answer that is sent while it is made.

Run it: serve examples/streaming.py

`curl -N localhost:8000/` shows five lines, one every half second (`?pause=0.1` is faster).
`curl localhost:8000/rows` gets 100,000 lines; `send()` waits whenever the client falls behind, so they are
never all in memory.
"""

import asyncio
from urllib.parse import parse_qs

HEADERS = [(b"content-type", b"text/plain; charset=utf-8")]


async def ticks(send, pause):
    """Lines with a pause between them: each leaves at once."""
    for number in range(1, 6):
        await send({"type": "http.response.body", "body": b"tick %d\n" % number, "more_body": True})
        await asyncio.sleep(pause)


async def rows(send):
    """Lines without a pause: those that are ready together leave together."""
    for number in range(100_000):
        await send({"type": "http.response.body", "body": b"row %d\n" % number, "more_body": True})


async def app(scope, receive, send):  # noqa: ARG001 - ASGI hands all three over
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    if scope["path"] == "/rows":
        await rows(send)
    else:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        await ticks(send, float(query.get("pause", ["0.5"])[0]))
    await send({"type": "http.response.body"})
