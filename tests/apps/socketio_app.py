"""A chat of python-socketio, which speaks WebSocket or polls: `serve socketio_app:app`."""

from __future__ import annotations

from typing import Any

import socketio

server = socketio.AsyncServer(async_mode="asgi")
app = socketio.ASGIApp(server)


@server.event  # type: ignore[untyped-decorator]
async def connect(sid: str, environ: dict[str, Any], auth: dict[str, str] | None) -> None:
    if not auth:
        raise socketio.exceptions.ConnectionRefusedError("who are you?")
    await server.save_session(sid, auth)
    await server.enter_room(sid, "chat")
    scheme = environ["asgi.scope"]["type"]
    await server.emit("joined", (auth["name"], scheme), room="chat", skip_sid=sid)


@server.event  # type: ignore[untyped-decorator]
async def say(sid: str, words: str | bytes) -> int:
    session = await server.get_session(sid)
    await server.emit("said", (session["name"], words), room="chat")
    return len(words)


@server.event  # type: ignore[untyped-decorator]
async def disconnect(sid: str, reason: str) -> None:
    session = await server.get_session(sid)
    print(f"app: {session['name']} left: {reason}", flush=True)
