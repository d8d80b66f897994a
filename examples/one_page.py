"""A one-page site and its API: files by the network, without Python; numbers by the application.

Run it: serve examples/one_page.py --static /=examples/site --static /api= --static-fallback /=index.html

`curl localhost:8000/` is the page, and so is every other that a browser asks for:
`curl -H 'Accept: text/html' localhost:8000/settings`. `curl -i localhost:8000/style.css` has an ETag,
and `curl -r 0-3` gets a part of it. What is below /api is the application's.
"""

import itertools
import json

counter = itertools.count(1)


async def app(scope, receive, send):  # noqa: ARG001 - ASGI hands all three over
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    found = scope["path"] == "/api/count"
    answer = json.dumps({"count": next(counter)} if found else {"error": "not found"}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": 200 if found else 404,
            "headers": [(b"content-type", b"application/json"), (b"cache-control", b"no-store")],
        }
    )
    await send({"type": "http.response.body", "body": answer})
