"""An application that waits for something else and then computes, as most do: for `overload.py`.

Not an example. `serve queueing:app`; one worker can answer some 400 requests a second, 8 or so at a time.
"""

import asyncio
import time
from typing import Any

WAITS = 0.02
# Of the processor's time, not of the clock's: a busy machine makes it longer, and not cheaper.
COMPUTES = 0.002


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer after both."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await asyncio.sleep(WAITS)
    until = time.thread_time() + COMPUTES
    while time.thread_time() < until:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
