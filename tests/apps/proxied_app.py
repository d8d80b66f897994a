"""Shows what proxies make of a scope, whatever the path."""

from __future__ import annotations

from kit import Receive, Scope, Send, answer_json, plain_lifespan


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await plain_lifespan(receive, send)
        return
    hosts = [value.decode() for name, value in scope["headers"] if name == b"host"]
    await answer_json(
        send,
        {
            "client": scope["client"],
            "server": scope["server"],
            "scheme": scope["scheme"],
            "host": hosts[0] if hosts else None,
            "hosts": len(hosts),
            "root_path": scope["root_path"],
            "path": scope["path"],
            "raw_path": scope["raw_path"].decode(),
        },
    )
