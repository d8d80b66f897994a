"""The matrix's application in Starlette."""

import asyncio

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

done = []


async def hello(request):
    return PlainTextResponse("hello")


async def query(request):
    return JSONResponse(dict(request.query_params))


def in_a_thread(request):
    return PlainTextResponse("from a thread")


async def form(request):
    return JSONResponse(dict(await request.form()))


async def upload(request):
    async with request.form() as sent:
        return JSONResponse({"name": sent["file"].filename, "size": len(await sent["file"].read())})


async def echo(request):
    return Response(b"".join([piece async for piece in request.stream()]))


async def pieces():
    for number in range(5):
        yield f"piece {number}\n"
        await asyncio.sleep(0.001)


async def stream(request):
    return StreamingResponse(pieces(), media_type="text/plain")


async def events(request):
    async def all_events():
        for number in range(3):
            yield f"data: {number}\n\n"

    return StreamingResponse(all_events(), media_type="text/event-stream")


async def session(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return PlainTextResponse(str(request.session["count"]))


async def background(request):
    if request.method == "GET":
        return PlainTextResponse(str(len(done)))
    return PlainTextResponse("later", status_code=202, background=BackgroundTask(done.append, 1))


async def file(request):
    return FileResponse(__file__, media_type="text/plain")


async def item(request):
    return JSONResponse({"name": request.path_params["name"], "path": request.url.path})


async def redirect(request):
    return RedirectResponse("/elsewhere")


async def nothing(request):
    return Response(status_code=204)


async def boom(request):
    raise RuntimeError("on purpose")


app = Starlette(
    routes=[
        Route("/", hello),
        Route("/query", query),
        Route("/thread", in_a_thread),
        Route("/form", form, methods=["POST"]),
        Route("/upload", upload, methods=["POST"]),
        Route("/echo", echo, methods=["POST"]),
        Route("/stream", stream),
        Route("/events", events),
        Route("/session", session),
        Route("/background", background, methods=["GET", "POST"]),
        Route("/file", file),
        Route("/item/{name}", item),
        Route("/redirect", redirect),
        Route("/nothing", nothing),
        Route("/boom", boom),
    ],
    middleware=[
        Middleware(SessionMiddleware, secret_key="no secret"),
        Middleware(GZipMiddleware, minimum_size=5000),
    ],
)
