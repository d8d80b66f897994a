"""A chat over WebSockets: what one says, all hear.

Run it: serve examples/chat.py

Open `http://localhost:8000/` in two windows. A client that reads too slowly delays nobody for longer than the
time it has (`--timeout-write`); then it is cut, and hears no more.
"""

import asyncio

from bridgehead import ClientDisconnected

PAGE = b"""<!doctype html><meta charset="utf-8"><title>Chat</title>
<form><input autofocus></form><ul></ul><script>
const socket = new WebSocket(location.href.replace("http", "ws"))
socket.onmessage = message => {
  document.querySelector("ul").appendChild(document.createElement("li")).textContent = message.data
}
document.querySelector("form").onsubmit = event => {
  event.preventDefault()
  socket.send(event.target[0].value)
  event.target.reset()
}
</script>"""
present = set()


async def tell(send, words):
    try:
        await send({"type": "websocket.send", "text": words})
    except ClientDisconnected:
        present.discard(send)


async def chat(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    present.add(send)
    try:
        while (message := await receive())["type"] == "websocket.receive":
            words = message.get("text") or "(something that is no text)"
            await asyncio.gather(*(tell(each, words) for each in list(present)))
    finally:
        present.discard(send)


async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await chat(receive, send)
    elif scope["type"] == "http":
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": PAGE})
    else:
        raise NotImplementedError(f"{scope['type']} is not served here")
