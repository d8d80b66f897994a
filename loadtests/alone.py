"""The Python call alone, in µs of a core: `python alone.py APP CONCURRENCY PATH BODY SPEAKS` prints it.

Not a server: the application is called in a loop, with a `receive` and a `send` that do nothing. What a
server costs is what is left of its figure.

Invariant: the loop is the one that the servers run on.
"""

import argparse
import asyncio
import importlib
import resource

import uvloop

SECONDS = 1.0
_BATCH = 64


async def send(message):
    """Nothing is done with it."""


def receive_of(body):
    """A `receive` that has the whole body."""
    message = {"type": "http.request", "body": body, "more_body": False}

    async def receive():
        return message

    return receive


def messages_of(text):
    """A `receive` that has so many messages as a call of ours has requests, and then no more."""
    waiting = [{"type": "websocket.disconnect", "code": 1000}]
    waiting += [{"type": "websocket.receive", "text": text}] * _BATCH
    waiting.append({"type": "websocket.connect"})

    async def receive():
        return waiting.pop()

    return receive


async def measure_messages(app, scope, text):
    """Microseconds of a core for each message."""
    done, before = 0, spent()
    deadline = asyncio.get_running_loop().time() + SECONDS
    while asyncio.get_running_loop().time() < deadline:
        await app(dict(scope), messages_of(text), send)
        done += _BATCH
    return (spent() - before) / done * 1e6


def scope_of(method, target, content_type):
    """What a server makes of the head of a request by wrk."""
    path, _, query = target.partition("?")
    headers = [(b"host", b"127.0.0.1:8000"), (b"content-type", content_type)]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }


async def measure(app, concurrency, scope, body):
    """Microseconds of a core for each call."""
    receive = receive_of(body)

    async def calls(number):
        for _ in range(number):
            # Frameworks write into a scope.
            await app(dict(scope), receive, send)

    async def batch():
        if concurrency == 1:
            await calls(_BATCH)
        else:
            await asyncio.gather(*(calls(4) for _ in range(concurrency)))
        return _BATCH if concurrency == 1 else 4 * concurrency

    await batch()
    done, before = 0, spent()
    deadline = asyncio.get_running_loop().time() + SECONDS
    while asyncio.get_running_loop().time() < deadline:
        done += await batch()
    return (spent() - before) / done * 1e6


def spent():
    """Seconds of a core, of all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    """Measure what the words name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].partition(":")[0])
    parser.add_argument("app", metavar="APP", help="module:name")
    parser.add_argument("concurrency", metavar="CONCURRENCY", type=int, help="calls at once")
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("body", metavar="BODY", help="what is sent; '' is a GET")
    parser.add_argument("speaks", metavar="SPEAKS", help="ws: BODY is a message of a WebSocket")
    words = parser.parse_args()
    module, _, name = words.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    if words.speaks == "ws":
        scope = {**scope_of("GET", words.path, b""), "type": "websocket", "scheme": "ws", "subprotocols": []}
        print(uvloop.run(measure_messages(app, scope, words.body)))
        return
    sent = words.body.encode()
    scope = scope_of("POST" if sent else "GET", words.path, b"application/json")
    print(uvloop.run(measure(app, words.concurrency, scope, sent)))


if __name__ == "__main__":
    main()
