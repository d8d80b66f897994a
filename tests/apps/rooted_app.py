"""Shows what `--root-path` does to a scope, whatever the path."""

from __future__ import annotations

from kit import Receive, Scope, Send, answer_json, plain_lifespan


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await plain_lifespan(receive, send)
        return
    await answer_json(
        send,
        {
            "root_path": scope["root_path"],
            "path": scope["path"],
            "raw_path": scope["raw_path"].decode(),
        },
    )
