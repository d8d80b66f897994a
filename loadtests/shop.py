"""What the scenarios ask: an application with a bit of everything, that notes its requests in a ledger.

Not a benchmark: `apps.py` has those. Run by itself: `serve loadtests/shop.py`.
"""

import asyncio
import json
from urllib.parse import parse_qs

from bridgehead.testing.canary_app import answer as answer_canary
from bridgehead.testing.ledgered import Ledgered

STOCK = [{"number": number, "name": f"item {number}", "price": number * 1.5} for number in range(100)]


async def shop(scope, receive, send):
    """Route, and answer."""
    if scope["type"] == "lifespan":
        return await lifespan(receive, send)
    if scope["type"] == "websocket":
        return await talk(receive, send)
    first, _, rest = scope["path"].strip("/").partition("/")
    return await ROUTES.get(first, missing)(scope, receive, send, rest)


async def home(scope, receive, send, rest):  # noqa: ARG001 - as all routes
    """A page."""
    await answer(send, b"<h1>A shop</h1>\n" * 50, b"text/html")


async def items(scope, receive, send, rest):
    """One item, or all."""
    if not rest:
        await answer(send, json.dumps(STOCK).encode(), b"application/json")
    elif rest.isdigit() and int(rest) < len(STOCK):
        await answer(send, json.dumps(STOCK[int(rest)]).encode(), b"application/json")
    else:
        await missing(scope, receive, send, rest)


async def orders(scope, receive, send, rest):  # noqa: ARG001
    """Take an order, after a look into what would be a database."""
    order = json.loads(await read(receive))
    await asyncio.sleep(0.005)
    await answer(send, json.dumps({"ordered": order}).encode(), b"application/json", 201)


async def upload(scope, receive, send, rest):  # noqa: ARG001
    """Count what comes, piece by piece."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await answer(send, b"%d" % size)


async def feed(scope, receive, send, rest):  # noqa: ARG001
    """Twenty lines, a millisecond apart."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    for number in range(20):
        line = b"line %d\n" % number
        await send({"type": "http.response.body", "body": line, "more_body": True})
        await asyncio.sleep(0.001)
    await send({"type": "http.response.body", "body": b""})


async def slow(scope, receive, send, rest):  # noqa: ARG001
    """As long as the query says, in seconds."""
    await asyncio.sleep(float(parse_qs(scope["query_string"]).get(b"for", [b"0.1"])[0]))
    await answer(send, b"done\n")


async def tasks(scope, receive, send, rest):  # noqa: ARG001
    """How many tasks the loop has."""
    await answer(send, b"%d" % len(asyncio.all_tasks()))


async def talk(receive, send):
    """By WebSocket: each message is sent back."""
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        else:
            await send({**message, "type": "websocket.send"})


async def canary(scope, receive, send, rest):  # noqa: ARG001
    """What a canary expects."""
    await answer_canary(scope, receive, send)


async def missing(scope, receive, send, rest):  # noqa: ARG001
    """Whatever else is asked for."""
    await answer(send, b"no such page\n", status=404)


ROUTES = {"": home, "items": items, "orders": orders, "upload": upload, "feed": feed}
ROUTES |= {"slow": slow, "tasks": tasks, "canary": canary}


async def read(receive):
    """The whole body."""
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def answer(send, body, kind=b"text/plain", status=200):
    """A whole answer."""
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def lifespan(receive, send):
    """Nothing to start, nothing to stop."""
    for half in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{half}.complete"})


app = Ledgered(shop)
