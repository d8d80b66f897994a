"""The smallest ASGI application.

Run it: serve examples/hello.py
"""


async def app(scope, receive, send):  # noqa: ARG001 - ASGI hands all three over
    """Answer every request with a greeting."""
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/plain; charset=utf-8")],
        }
    )
    await send({"type": "http.response.body", "body": b"Hello from Bridgehead\n"})
