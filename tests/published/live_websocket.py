"""What stands for the application in a WebSocket of Starlette's test client: a real one, to a server.

The client's own session goes on, and talks to this by ASGI's messages, as it would to the application.

Not seen on any wire, and so taken from what the application said: the code of a WebSocket that it closes
before it is accepted, which clients see as a 403.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import bridgehead

if TYPE_CHECKING:
    from live_client import Run

SECONDS = 20.0
# The handshake's own, which the client's library writes.
OF_THE_HANDSHAKE = (b"host", b"connection", b"upgrade", b"sec-websocket-")
OF_THE_ANSWER = ("connection", "upgrade", "sec-websocket-", "transfer-encoding")


class Wire:
    """An application that is somewhere else."""

    def __init__(self, port: int, run: Run, mark: tuple[bytes, bytes]) -> None:
        self.port, self.run, self.mark = port, run, mark

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        try:
            socket = await self.connect(scope)
        except InvalidStatus as refused:
            await self.tell_refusal(refused.response, send)
            await self.settle()
            return
        answer = socket.response
        assert answer is not None
        accepted = {
            "type": "websocket.accept",
            "subprotocol": socket.subprotocol,
            "headers": told(answer.headers),
        }
        await send(accepted)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.carry, socket, receive)
                await self.hear(socket, send)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await socket.close()
                await self.settle()

    async def connect(self, scope: dict[str, Any]) -> ClientConnection:
        path = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        host = dict(scope["headers"]).get(b"host", b"testserver")
        headers = [pair for pair in scope["headers"] if not pair[0].startswith(OF_THE_HANDSHAKE)]
        return await connect(
            f"ws://{host.decode()}{path.decode()}",
            host="127.0.0.1",
            port=self.port,
            additional_headers=[(name.decode(), value.decode()) for name, value in [*headers, self.mark]],
            subprotocols=scope["subprotocols"] or None,
            user_agent_header=None,
            compression=None,
            ping_interval=None,
            proxy=None,
        )

    async def tell_refusal(self, answer: Any, send: Any) -> None:
        """A 403 that the application asked for by closing, or an answer of its own."""
        said = self.run.said[0] if self.run.said else {"type": None}
        if said["type"] == "websocket.close":
            assert answer.status_code == 403
            await send(said)
        elif said["type"] == "websocket.http.response.start":
            headers = told(answer.headers)
            await send({"type": said["type"], "status": answer.status_code, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": answer.body or b""})

    async def carry(self, socket: ClientConnection, receive: Any) -> None:
        """What the test sends."""
        while True:
            match await receive():
                case {"type": "websocket.receive", "text": str(text)}:
                    await socket.send(text)
                case {"type": "websocket.receive", "bytes": bytes(data)}:
                    await socket.send(data)
                case {"type": "websocket.disconnect", "code": int(code), "reason": reason}:
                    await socket.close(code, reason or "")
                    return

    async def hear(self, socket: ClientConnection, send: Any) -> None:
        """What comes, until the end."""
        try:
            while True:
                came = await socket.recv()
                kind = "text" if isinstance(came, str) else "bytes"
                await send({"type": "websocket.send", kind: came})
        except ConnectionClosed as closed:
            closing = closed.rcvd if closed.rcvd_then_sent else None
            if closing is not None and any(each["type"] == "websocket.close" for each in self.run.said):
                await send({"type": "websocket.close", "code": closing.code, "reason": closing.reason})

    async def settle(self) -> None:
        """The application has returned; what it raised is the test's."""
        with anyio.CancelScope(shield=True):
            over = await anyio.to_thread.run_sync(self.run.over.wait, SECONDS)
        assert over, "the application did not return"
        error = self.run.error
        if error is not None and not isinstance(error, bridgehead.ClientDisconnected):
            raise error


def told(headers: Any) -> list[tuple[bytes, bytes]]:
    """What an answer says beside the handshake."""
    return [
        (name.lower().encode(), value.encode())
        for name, value in headers.raw_items()
        if not name.lower().startswith(OF_THE_ANSWER)
    ]
