"""The applications that are measured; each answers `hello`.

Not examples: they do as little as ASGI allows, so that what is left is the server's.
"""

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


async def lifespan(receive, send):
    """Nothing to start, nothing to stop."""
    for half in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{half}.complete"})
