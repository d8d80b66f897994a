"""Answers from open files and pipes, some of which nobody writes to. What they meet they note.

Run by itself: `serve files_app:app --pathsend`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from kit import Receive, Routes, Scope, Send, answer, end, option, plain_lifespan, start

routes = Routes()

# Nobody writes to it, and nobody closes it.
SILENT, _KEPT_OPEN = os.pipe()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await plain_lifespan(receive, send)
        print("app: lifespan over", file=sys.stderr, flush=True)
    else:
        await routes(scope, receive, send)


def file_message(file: object, **rest: object) -> dict[str, Any]:
    return {"type": "http.response.zerocopysend", "file": file, **rest}


def file_named(scope: Scope) -> str:
    return unquote(scope["query_string"].decode())


@routes.at("impatient")
async def give_up_on_a_pipe(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    try:
        await asyncio.wait_for(send(file_message(SILENT, more_body=True)), 0.1)
    except TimeoutError:
        await end(send, b"nothing came")


@routes.at("patient")
async def wait_for_a_pipe(scope: Scope, receive: Receive, send: Send) -> None:
    silent, open_for_now = os.pipe()
    await start(send)
    try:
        await send(file_message(silent))
    except OSError as error:
        routes.note(option(scope, "name"), type(error).__name__)
        raise
    finally:
        os.close(silent)
        os.close(open_for_now)


@contextmanager
def a_pipe(flags: int) -> Iterator[tuple[int, Callable[[bytes], None]]]:
    """A descriptor to read, and who writes; writing nothing closes."""
    reading, writing = os.pipe2(flags)

    def write(data: bytes) -> None:
        if data:
            os.write(writing, data)
        else:
            os.close(writing)

    try:
        yield reading, write
    finally:
        os.close(reading)


@routes.at("non-blocking")
async def send_a_pipe_that_is_read_without_blocking(scope: Scope, receive: Receive, send: Send) -> None:
    with a_pipe(os.O_NONBLOCK) as (reading, write):
        await start(send)
        sending = asyncio.ensure_future(send(file_message(reading)))
        for each in (b"one ", b"two ", b"three", b""):
            await asyncio.sleep(0.02)
            write(each)
        await sending


@routes.at("read-before")
async def read_before_and_after(scope: Scope, receive: Receive, send: Send) -> None:
    """Three bytes read by Python, ten sent, and the rest read by Python again."""
    with open(file_named(scope), "rb") as file:
        first = file.read(3)
        await start(send)
        await send(file_message(file, count=10, more_body=True))
        await end(send, b"|" + first + b"|" + file.read())


@routes.at("closed-before")
async def close_before_the_await(scope: Scope, receive: Receive, send: Send) -> None:
    file = open(file_named(scope), "rb")  # noqa: SIM115 - closed below
    await start(send)
    sending = send(file_message(file))
    file.close()
    await sending


@routes.at("or-404")
async def answer_404_for_what_is_missing(scope: Scope, receive: Receive, send: Send) -> None:
    """`?PATH`, some time after the start; a path that ends with `&late` is answered after a pause."""
    path, _, late = file_named(scope).partition("&")
    await start(send, (b"x-file", b"found"))
    await asyncio.sleep(0.01)
    try:
        await send({"type": "http.response.pathsend", "path": path})
    except OSError as error:
        if late:
            await asyncio.sleep(0.05)
        kind = f"{type(error).__name__} {error.filename!r}".encode()
        await answer(send, kind, status=404)


@routes.at("uncaught")
async def send_a_path(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    await send({"type": "http.response.pathsend", "path": file_named(scope)})


@routes.at("in-parts")
async def send_a_file_in_parts(scope: Scope, receive: Receive, send: Send) -> None:
    """`?PATH&STATUS&LENGTH`, four bytes at a time, by object and by descriptor, to the end."""
    path, _, wanted = file_named(scope).partition("&")
    status, _, length = wanted.partition("&")
    with open(path, "rb") as file, open(path, "rb") as descriptor:
        number, size = descriptor.fileno(), os.fstat(descriptor.fileno()).st_size
        declared = [(b"content-length", length.encode())] if length else []
        await start(send, *declared, status=int(status))
        sent = 0
        while sent < 20 and (file.tell(), os.lseek(number, 0, os.SEEK_CUR)) != (size, size):
            sent += 1
            try:
                await send(file_message(file, count=4, more_body=True))
                await send(file_message(number, count=4, more_body=True))
            except OSError as error:
                routes.note("in-parts", type(error).__name__)
                return
        routes.note("in-parts", sent)
        await end(send)
