"""The service under test: prices, from another service that may be slow or down.

Run it: serve examples/testing/shop.py
"""

import asyncio
import os
import urllib.error
import urllib.request

PRICES = os.environ.get("PRICES_URL", "http://127.0.0.1:9000")
PATIENCE = float(os.environ.get("PRICES_PATIENCE", "0.5"))


def fetch() -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"{PRICES}/prices", timeout=PATIENCE) as answer:
            return 200, answer.read()
    except (OSError, urllib.error.URLError):
        return 503, b"no prices at the moment\n"


async def app(scope, receive, send):  # noqa: ARG001 - ASGI gives all three
    assert scope["type"] == "http"
    status, body = 200, b"a shop\n"
    if scope["path"] == "/prices":
        status, body = await asyncio.to_thread(fetch)
    await send({"type": "http.response.start", "status": status, "headers": [(b"x-shop", b"1")]})
    await send({"type": "http.response.body", "body": body})
