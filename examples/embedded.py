"""A program with a server inside: its port, requests to it, its end.

Run it: python examples/embedded.py

It starts a server on a free port beside a task of its own, asks it three times, and ends it.
`server.should_exit = True` may come from any thread, task or handler.
"""

import asyncio
import urllib.request

import bridgehead

count = 0


async def app(scope, receive, send):  # noqa: ARG001 - ASGI hands all three over
    """Count the requests."""
    global count
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    count += 1
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"request %d" % count})


def ask(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
        return answer.read().decode()


async def main():
    server = bridgehead.Server(bridgehead.Config(app, port=0, log_level="warning", access_log=False))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    for _ in range(3):
        print(await asyncio.to_thread(ask, port))
    server.should_exit = True
    await serving
    print("the server has ended")


if __name__ == "__main__":
    asyncio.run(main())
