"""The matrix's application in FastAPI."""

import asyncio
from typing import Annotated

from fastapi import BackgroundTasks, Depends, FastAPI, Form, Request, UploadFile
from fastapi.responses import FileResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.middleware.sessions import SessionMiddleware

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key="no secret")
done = []


@app.middleware("http")
async def add_header(request: Request, call_next):
    response = await call_next(request)
    response.headers["x-middleware"] = "seen"
    return response


async def opened():
    yield "opened"


@app.get("/", response_class=PlainTextResponse)
async def hello(resource: Annotated[str, Depends(opened)]):
    return "hello"


@app.get("/query")
async def query(request: Request):
    return dict(request.query_params)


@app.get("/thread", response_class=PlainTextResponse)
def in_a_thread():
    return "from a thread"


@app.post("/form")
async def form(one: Annotated[str, Form()], two: Annotated[str, Form()]):
    return {"one": one, "two": two}


@app.post("/upload")
async def upload(file: UploadFile):
    return {"name": file.filename, "size": len(await file.read())}


@app.post("/echo")
async def echo(request: Request):
    return Response(await request.body())


@app.get("/stream")
async def stream():
    async def pieces():
        for number in range(5):
            yield f"piece {number}\n"
            await asyncio.sleep(0.001)

    return StreamingResponse(pieces(), media_type="text/plain")


@app.get("/events")
async def events():
    def all_events():
        for number in range(3):
            yield f"data: {number}\n\n"

    return StreamingResponse(all_events(), media_type="text/event-stream")


@app.get("/session", response_class=PlainTextResponse)
async def session(request: Request):
    request.session["count"] = request.session.get("count", 0) + 1
    return str(request.session["count"])


@app.post("/background", status_code=202, response_class=PlainTextResponse)
async def later(tasks: BackgroundTasks):
    tasks.add_task(done.append, 1)
    return "later"


@app.get("/background", response_class=PlainTextResponse)
async def how_many():
    return str(len(done))


@app.get("/file")
@app.head("/file")
async def file():
    return FileResponse(__file__, media_type="text/plain")


@app.get("/item/{name}")
async def item(name: str, request: Request):
    return {"name": name, "path": request.url.path}


@app.get("/redirect")
async def redirect():
    return RedirectResponse("/elsewhere")


@app.get("/nothing", status_code=204)
async def nothing():
    return None


@app.get("/boom")
async def boom():
    raise RuntimeError("on purpose")
