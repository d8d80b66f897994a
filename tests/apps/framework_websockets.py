"""WebSockets as Starlette and FastAPI show them: `serve framework_websockets:starlette`, or `:fastapi`."""

# ruff: noqa: ARG001, ARG002 - the framework decides which arguments a handler has
from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, FastAPI, WebSocketException, status
from starlette.applications import Starlette
from starlette.endpoints import WebSocketEndpoint
from starlette.responses import PlainTextResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect


class Echo(WebSocketEndpoint):
    """Starlette's endpoint: it accepts, receives and closes by itself."""

    encoding = "text"

    async def on_connect(self, websocket: WebSocket) -> None:
        await websocket.accept(subprotocol="chat", headers=[(b"x-from", b"starlette")])

    async def on_receive(self, websocket: WebSocket, data: Any) -> None:
        await websocket.send_text(f"Message text was: {data}")

    async def on_disconnect(self, websocket: WebSocket, close_code: int) -> None:
        print(f"app: left by {close_code}", flush=True)


async def deny(websocket: WebSocket) -> None:
    await websocket.send_denial_response(PlainTextResponse("not you", 401, headers={"x-why": "taste"}))


starlette = Starlette(routes=[WebSocketRoute("/ws", Echo), WebSocketRoute("/deny", deny)])
fastapi = FastAPI()


class ConnectionManager:
    """FastAPI's page "Handling disconnections and multiple clients"."""

    def __init__(self) -> None:
        self.active: list[WebSocket] = []

    async def connect(self, websocket: WebSocket) -> None:
        await websocket.accept()
        self.active.append(websocket)

    async def broadcast(self, message: str) -> None:
        for connection in self.active:
            await connection.send_text(message)


manager = ConnectionManager()


async def token_of(websocket: WebSocket, token: str | None = None) -> str:
    if token is None:
        raise WebSocketException(code=status.WS_1008_POLICY_VIOLATION)
    return token


@fastapi.websocket("/ws/{client_id}")
async def chat(websocket: WebSocket, client_id: int, token: Annotated[str, Depends(token_of)]) -> None:
    await manager.connect(websocket)
    try:
        while True:
            data = await websocket.receive_text()
            await websocket.send_json({"you wrote": data, "token": token})
            await manager.broadcast(f"Client #{client_id} says: {data}")
    except WebSocketDisconnect:
        manager.active.remove(websocket)
        await manager.broadcast(f"Client #{client_id} left the chat")
