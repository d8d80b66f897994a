"""The matrix's application in Litestar."""

import asyncio
from typing import Annotated, Any

from litestar import Litestar, MediaType, Request, Response, get, head, post
from litestar.background_tasks import BackgroundTask
from litestar.datastructures import UploadFile
from litestar.enums import RequestEncodingType
from litestar.middleware.session.client_side import CookieBackendConfig
from litestar.params import Body
from litestar.response import File, Redirect, ServerSentEvent, Stream

done: list[int] = []


@get("/", media_type=MediaType.TEXT)
async def hello() -> str:
    return "hello"


@get("/query")
async def query(request: Request) -> dict[str, str]:
    return dict(request.query_params)


@get("/thread", media_type=MediaType.TEXT, sync_to_thread=True)
def in_a_thread() -> str:
    return "from a thread"


@post("/form", status_code=200)
async def form(
    data: Annotated[dict[str, str], Body(media_type=RequestEncodingType.URL_ENCODED)],
) -> dict[str, str]:
    return data


@post("/upload", status_code=200)
async def upload(
    data: Annotated[dict[str, UploadFile], Body(media_type=RequestEncodingType.MULTI_PART)],
) -> dict[str, Any]:
    return {"name": data["file"].filename, "size": len(await data["file"].read())}


@post("/echo", status_code=200, media_type="application/octet-stream")
async def echo(request: Request) -> bytes:
    return await request.body()


@get("/stream")
async def stream() -> Stream:
    async def pieces():
        for number in range(5):
            yield f"piece {number}\n"
            await asyncio.sleep(0.001)

    return Stream(pieces(), media_type="text/plain")


@get("/events")
async def events() -> ServerSentEvent:
    async def all_events():
        for number in range(3):
            yield str(number)

    return ServerSentEvent(all_events())


@get("/session", media_type=MediaType.TEXT)
async def session(request: Request) -> str:
    count = request.session.get("count", 0) + 1
    request.set_session({"count": count})
    return str(count)


async def finish() -> None:
    done.append(1)


@post("/background", status_code=202, media_type=MediaType.TEXT)
async def later() -> Response[str]:
    return Response("later", background=BackgroundTask(finish))


@get("/background", media_type=MediaType.TEXT)
async def how_many() -> str:
    return str(len(done))


@get("/file")
async def file() -> File:
    return File(__file__, media_type="text/plain")


@head("/file")
async def file_head() -> File:
    return File(__file__, media_type="text/plain")


@get("/item/{name:str}")
async def item(name: str, request: Request) -> dict[str, str]:
    return {"name": name, "path": request.url.path}


@get("/redirect")
async def redirect() -> Redirect:
    return Redirect("/elsewhere")


@get("/nothing", status_code=204)
async def nothing() -> None: ...


@get("/boom")
async def boom() -> None:
    raise RuntimeError("on purpose")


app = Litestar(
    [
        hello, query, in_a_thread, form, upload, echo, stream, events, session, later, how_many, file,
        file_head, item, redirect, nothing, boom,
    ],
    middleware=[CookieBackendConfig(secret=b"0123456789abcdef").middleware],
)  # fmt: skip
