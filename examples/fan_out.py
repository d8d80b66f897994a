"""Bounded fan-out: one request asks many services at once, a few at a time, and fails as a whole.

Run it: serve examples/fan_out.py

`curl 'localhost:8000/?count=50'` asks fifty, ten at a time. `curl 'localhost:8000/?count=50&broken=7'` has
the seventh fail: the others are cancelled at once, none goes on, and the answer is 502.
"""

import asyncio
import json
from urllib.parse import parse_qs

AT_ONCE = (
    10  # what the services allow, for this whole process: a semaphore for each request would not bound it
)
slots = asyncio.Semaphore(AT_ONCE)
running = most = 0


async def ask(number, broken):
    """What would be an HTTP client's call."""
    global running, most
    async with slots:
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(0.01)
            if number == broken:
                raise ConnectionError(f"service {number} is not there")
            return number * number
        finally:
            running -= 1


async def ask_all(count, broken):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(number, broken)) for number in range(count)]
    return [task.result() for task in tasks]


async def app(scope, _receive, send):
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    query = parse_qs(scope["query_string"].decode())
    count, broken = (int(query.get(name, ["-1"])[0]) for name in ("count", "broken"))
    status, answer = 200, {}
    try:
        answer["answers"] = await ask_all(count, broken)
    except* ConnectionError as group:
        status, answer["errors"] = 502, [str(error) for error in group.exceptions]
    body = json.dumps(answer | {"running": running, "most": most}).encode()
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": body})
