"""Answers each request with what the server has made of it, down to the byte.

Run by itself: `serve framing_app:app`.
"""

from __future__ import annotations

from kit import Receive, Scope, Send, answer_json, plain_lifespan, read_body


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await plain_lifespan(receive, send)
        return
    try:
        body = await read_body(receive)
    except EOFError:
        return
    target = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    await answer_json(
        send,
        {
            "method": scope["method"],
            "target": target.decode("latin-1"),
            "headers": [
                [name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]
            ],
            "body": body.decode("latin-1"),
        },
    )
