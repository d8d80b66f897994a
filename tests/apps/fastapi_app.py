"""A FastAPI application as people write them. Run by itself: `serve fastapi_app:app`."""

# ruff: noqa: ARG001 - the framework decides which arguments a handler has
from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import BackgroundTasks, Depends, FastAPI, File, Form, Header, HTTPException, Request, UploadFile
from fastapi.responses import FileResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel
from starlette.middleware.base import RequestResponseEndpoint
from starlette.responses import Response

events: asyncio.Queue[str] = asyncio.Queue()
user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, str]]:
    yield {"database": "connected"}


app = FastAPI(lifespan=lifespan)


class Item(BaseModel):
    name: str
    price: float
    tags: list[str] = []


@app.middleware("http")
async def add_header(request: Request, call_next: RequestResponseEndpoint) -> Response:
    response = await call_next(request)
    response.headers["x-process"] = request.method
    return response


@app.get("/")
async def root() -> dict[str, str]:
    return {"hello": "world"}


@app.get("/sync")
def in_a_thread() -> dict[str, bool]:
    return {"main": threading.current_thread() is threading.main_thread()}


@app.get("/items/{number}")
async def read_item(
    number: int, q: str | None = None, x_token: Annotated[str, Header()] = ""
) -> dict[str, object]:
    return {"number": number, "q": q, "token": x_token}


@app.post("/items", status_code=201)
async def create_item(item: Item) -> Item:
    return item


@app.post("/upload")
async def upload(file: UploadFile, note: Annotated[str, Form()] = "") -> dict[str, object]:
    content = await file.read()
    return {"name": file.filename, "size": len(content), "sum": sum(content[:1000]), "note": note}


@app.post("/files")
async def files(file: Annotated[bytes, File()]) -> dict[str, int]:
    return {"size": len(file)}


async def async_session() -> AsyncIterator[str]:
    events.put_nowait("async open")
    try:
        yield "async session"
    finally:
        events.put_nowait("async closed")


def sync_session() -> Iterator[str]:
    events.put_nowait("sync open")
    try:
        yield "sync session"
    finally:
        events.put_nowait("sync closed")


@app.get("/dependencies")
async def dependencies(
    first: Annotated[str, Depends(async_session)], second: Annotated[str, Depends(sync_session)]
) -> list[str]:
    return [first, second]


@app.get("/dependency-that-fails")
async def dependency_that_fails(session: Annotated[str, Depends(async_session)]) -> None:
    raise HTTPException(409, session)


@app.get("/event")
async def event() -> str:
    return await asyncio.wait_for(events.get(), 10)


@app.get("/stream")
async def stream(count: int) -> StreamingResponse:
    async def generate() -> AsyncIterator[str]:
        for number in range(count):
            yield f"data: {number}\n\n"
            await asyncio.sleep(0.001)

    return StreamingResponse(generate(), media_type="text/event-stream")


@app.get("/sync-stream")
def sync_stream() -> StreamingResponse:
    return StreamingResponse(iter([b"one,", b"two,", b"three"]))


@app.get("/file")
async def file() -> FileResponse:
    return FileResponse(Path(__file__))


@app.get("/background")
async def background(tasks: BackgroundTasks) -> str:
    async def work() -> None:
        await asyncio.sleep(0.05)
        events.put_nowait("background done")

    tasks.add_task(work)
    return "answered"


@app.get("/user/{name}")
async def set_user(name: str) -> dict[str, str]:
    before = user.get()
    user.set(name)
    await asyncio.sleep(0.01)
    return {"before": before, "after": user.get()}


@app.get("/state")
async def state(request: Request) -> str:
    database: str = request.state.database
    return database


@app.get("/slow")
async def slow(seconds: float) -> str:
    async with asyncio.timeout(seconds * 10 + 5):
        await asyncio.sleep(seconds)
    return "slow"


@app.get("/timeout", response_class=PlainTextResponse)
async def timeout() -> str:
    try:
        async with asyncio.timeout(0.02):
            await asyncio.sleep(10)
    except TimeoutError:
        return "timed out"
    return "no timeout"


@app.get("/fail")
async def fail() -> None:
    raise RuntimeError("failed on purpose")
