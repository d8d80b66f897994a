"""A Starlette application as people write them. Run by itself: `serve starlette_app:app`."""

# ruff: noqa: ARG001 - the framework decides which arguments a handler has
from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask, BackgroundTasks
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

events: asyncio.Queue[str] = asyncio.Queue()


class AddHeader(BaseHTTPMiddleware):
    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        response = await call_next(request)
        response.headers["x-middleware"] = request.url.path
        return response


async def hello(request: Request) -> Response:
    return PlainTextResponse(f"hello {request.path_params.get('name', 'world')}")


async def echo(request: Request) -> Response:
    return Response(await request.body(), media_type=request.headers.get("content-type"))


async def echo_stream(request: Request) -> Response:
    return StreamingResponse(request.stream())


async def form(request: Request) -> Response:
    async with request.form() as fields:
        upload: Any = fields["file"]
        content = await upload.read()
        return JSONResponse({"name": upload.filename, "size": len(content), "note": fields["note"]})


async def stream(request: Request) -> Response:
    count = int(request.query_params["count"])

    async def generate() -> AsyncIterator[bytes]:
        for number in range(count):
            yield b"%d\n" % number
            if number % 100 == 0:
                await asyncio.sleep(0)

    return StreamingResponse(generate(), media_type="text/plain")


async def endless(request: Request) -> Response:
    async def generate() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"tick\n"
                await asyncio.sleep(0.01)
        finally:
            events.put_nowait("endless finished")

    return StreamingResponse(generate())


async def told_stream(request: Request) -> Response:
    """Goes on though it is told that its client has left."""

    async def generate() -> AsyncIterator[bytes]:
        yield b"begun, "
        while not await request.is_disconnected():
            await asyncio.sleep(0.01)
        for number in range(1000):
            yield b"%d\n" % number

    return StreamingResponse(generate(), background=BackgroundTask(events.put_nowait, "told stream finished"))


async def failing_stream(request: Request) -> Response:
    async def generate() -> AsyncIterator[bytes]:
        yield b"begun"
        await asyncio.sleep(0.01)
        raise RuntimeError("failed in the stream")

    return StreamingResponse(generate())


async def file(request: Request) -> Response:
    return FileResponse(os.environ["TEST_FILE"], filename="download.bin")


async def background(request: Request) -> Response:
    async def work() -> None:
        await asyncio.sleep(0.05)
        events.put_nowait("async background")

    def blocking_work() -> None:
        asyncio.run(asyncio.sleep(0))

    tasks = BackgroundTasks([BackgroundTask(work), BackgroundTask(blocking_work)])
    return PlainTextResponse("answered", background=tasks)


async def wait_for_disconnect(request: Request) -> Response:
    events.put_nowait("waiting")
    while not await request.is_disconnected():
        await asyncio.sleep(0.01)
    events.put_nowait("disconnected")
    return PlainTextResponse("nobody reads this")


async def read_half(request: Request) -> Response:
    events.put_nowait("reading")
    try:
        await request.body()
    except ClientDisconnect:
        events.put_nowait("client disconnected")
    return PlainTextResponse("")


async def event(request: Request) -> Response:
    return PlainTextResponse(await asyncio.wait_for(events.get(), 10))


async def state(request: Request) -> Response:
    return JSONResponse({"number": request.state.number})


async def fail(request: Request) -> Response:
    raise RuntimeError("failed on purpose")


async def not_allowed(request: Request) -> Response:
    raise HTTPException(418, "a teapot")


async def redirect(request: Request) -> Response:
    return RedirectResponse(request.url_for("hello"))


async def cookies(request: Request) -> Response:
    response = JSONResponse(request.cookies)
    response.set_cookie("one", "1")
    response.set_cookie("two", "2")
    return response


def blocking(request: Request) -> Response:
    return PlainTextResponse("from a thread")


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, int]]:
    yield {"number": 42}


app = Starlette(
    routes=[
        Route("/", hello, name="root"),
        Route("/hello", hello, name="hello"),
        Route("/hello/{name}", hello),
        Route("/echo", echo, methods=["POST", "PUT"]),
        Route("/echo-stream", echo_stream, methods=["POST"]),
        Route("/form", form, methods=["POST"]),
        Route("/stream", stream),
        Route("/endless", endless),
        Route("/told-stream", told_stream),
        Route("/failing-stream", failing_stream),
        Route("/file", file, methods=["GET", "HEAD"]),
        Route("/background", background),
        Route("/wait-for-disconnect", wait_for_disconnect),
        Route("/read-half", read_half, methods=["POST"]),
        Route("/event", event),
        Route("/state", state),
        Route("/fail", fail),
        Route("/teapot", not_allowed),
        Route("/redirect", redirect),
        Route("/cookies", cookies),
        Route("/blocking", blocking),
        Mount("/static", StaticFiles(directory=Path(__file__).parent)),
    ],
    lifespan=lifespan,
)

with_middleware = Starlette(
    routes=[*app.routes],
    middleware=[
        Middleware(CORSMiddleware, allow_origins=["*"]),
        Middleware(GZipMiddleware, minimum_size=500),
        Middleware(AddHeader),
    ],
    lifespan=lifespan,
)
