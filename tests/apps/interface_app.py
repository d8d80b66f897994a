"""Applications of every interface, with the same few paths where that can be.

Run one of them: `serve interface_app:wsgi --interface wsgi`.
"""

# ruff: noqa: ARG001 - the interfaces decide which arguments there are
from __future__ import annotations

import json
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any

from kit import Receive, Scope, Send, answer, answer_json, read_body


async def asgi3(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, {"asgi": scope["asgi"], "interface": "asgi3"})


class Asgi2:
    """Called with the scope, and what that gives with the rest; has no lifespan."""

    def __init__(self, scope: Scope) -> None:
        if scope["type"] != "http":
            raise ValueError(f"no {scope['type']} here")
        self.scope = scope

    async def __call__(self, receive: Receive, send: Send) -> None:
        match self.scope["path"]:
            case "/echo":
                await answer(send, await read_body(receive))
            case "/error":
                raise RuntimeError("the ASGI 2 application failed")
            case _:
                await answer_json(send, {"asgi": self.scope["asgi"], "interface": "asgi2"})


class Asgi2WithLifespan(Asgi2):
    started: list[str] = []  # noqa: RUF012 - seen by all requests

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, receive: Receive, send: Send) -> None:
        if self.scope["type"] == "lifespan":
            while True:
                message = await receive()
                self.started.append(message["type"])
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        await answer_json(send, self.started)


def asgi2_function(scope: Scope) -> Callable[[Receive, Send], Coroutine[Any, Any, None]]:
    return Asgi2(scope)


class Asgi3Class:
    """Called with all three, and awaited."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.arguments = (scope, receive, send)

    def __await__(self) -> Any:
        return asgi3(*self.arguments).__await__()


def asgi3_in_a_plain_function(scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
    return asgi3(scope, receive, send)


def asgi3_behind_any_arguments(*arguments: Any, **more: Any) -> Coroutine[Any, Any, None]:
    return asgi3(*arguments, **more)


Start = Callable[..., Callable[[bytes], object]]


class Chunks:
    """An iterable that says when the server closes it."""

    closed: list[bool] = []  # noqa: RUF012 - seen by all requests

    def __iter__(self) -> Iterator[bytes]:
        for number in range(1000):
            yield b"chunk %d\n" % number

    def close(self) -> None:
        self.closed.append(True)


class Endless:
    """Streams until it is closed, which it says."""

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield b"e" * 65536

    def close(self) -> None:
        os.write(2, b"app: endless closed\n")


def wsgi(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    match environ["PATH_INFO"]:
        case "/environ":
            names = ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL")
            more = (
                "SERVER_NAME",
                "SERVER_PORT",
                "REMOTE_ADDR",
                "CONTENT_TYPE",
                "HTTP_X_TWICE",
                "wsgi.url_scheme",
            )
            body = json.dumps({name: environ.get(name) for name in (*names, *more)}).encode()
            start_response("200 OK", [("Content-Type", "application/json")])
            return [body]
        case "/echo":
            length = int(environ.get("CONTENT_LENGTH") or -1)
            start_response("200 OK", [("Content-Type", "application/octet-stream")])
            return [environ["wsgi.input"].read(length)]
        case "/lines":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"%d," % len(line) for line in environ["wsgi.input"]]
        case "/stream":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return Chunks()
        case "/endless":
            start_response("200 OK", [])
            return Endless()
        case "/closed":
            start_response("200 OK", [])
            return [b"%d" % len(Chunks.closed)]
        case "/empty":
            start_response("204 No Content", [])
            return []
        case "/error":
            raise RuntimeError("the WSGI application failed")
        case "/never-started":
            return [b"a body"] * 100
        case "/never-started-nor-said":
            return []
        case "/late-error":
            start_response("200 OK", [("Content-Length", "1000")])
            return fail_in_the_middle()
    start_response("404 Not Found", [("Content-Type", "text/plain")])
    return [b"nothing here"]


def fail_in_the_middle() -> Iterator[bytes]:
    yield b"a beginning"
    raise RuntimeError("the WSGI application failed in the middle")
