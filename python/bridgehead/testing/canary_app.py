"""What a canary may ask: answers that tell whether they are whole, and that are noted in a ledger.

`bridgehead.testing.canary_app:app` is a target. The path says how: `/` answers at once, `/?wait=0.05` after a
while, `/?wait=0.05&pieces=4` in pieces with the wait between them, without a declared length. A POST of a
canary has to bring the body that is due; else what is answered is another one.

Invariant: a body is a function of its request's id (`body_of`), so whoever knows the id knows the body.
"""

import asyncio
import hashlib
from typing import Any
from urllib.parse import parse_qs

from bridgehead.testing.ledgered import Ledgered, Scope, canary_of

_LENGTH = 2048


def body_of(request: int) -> bytes:
    """The body that is due."""
    piece = hashlib.sha256(b"%d" % request).hexdigest().encode()
    return (piece * (_LENGTH // len(piece) + 1))[:_LENGTH]


async def answer(scope: Scope, receive: Any, send: Any) -> None:
    """An ASGI application without a lifespan."""
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    came, more = bytearray(), True
    while more:
        message = await receive()
        came += message.get("body", b"")
        more = message.get("more_body", False)
    asked = {name.decode(): values[-1] for name, values in parse_qs(scope["query_string"]).items()}
    wait, pieces = float(asked.get("wait", 0)), int(asked.get("pieces", 1))
    request = canary_of(scope)
    body = body_of(request or 0)
    if request is not None and scope["method"] == "POST" and came != body:
        # Of status 200, for a server's error pages are allowed, and a body that is not due is told.
        body = b"another body came: %d bytes" % len(came)
    headers = [(b"content-length", b"%d" % len(body))] if pieces == 1 else []
    await asyncio.sleep(wait)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    step = -(-len(body) // pieces)
    for at in range(0, len(body), step):
        more = at + step < len(body)
        await send({"type": "http.response.body", "body": body[at : at + step], "more_body": more})
        if more:
            await asyncio.sleep(wait)


app = Ledgered(answer)
