"""The matrix's application in BlackSheep."""

import asyncio
from pathlib import Path

from blacksheep import Application, Content, Request, Response, StreamedContent, json, redirect, text

app = Application()
app.use_sessions("no secret")
done = []


@app.router.get("/")
async def hello():
    return text("hello")


@app.router.get("/query")
async def query(request: Request):
    return json({name: values[0] for name, values in request.query.items()})


@app.router.get("/thread")
async def in_a_thread():
    return text(await asyncio.to_thread(lambda: "from a thread"))


@app.router.post("/form")
async def form(request: Request):
    return json(dict(await request.form()))


@app.router.post("/upload")
async def upload(request: Request):
    (sent,) = await request.files()
    return json({"name": sent.file_name.decode(), "size": len(sent.data)})


@app.router.post("/echo")
async def echo(request: Request):
    return Response(200, content=Content(b"application/octet-stream", await request.read() or b""))


def streamed(kind: bytes, line: str, count: int):
    async def pieces():
        for number in range(count):
            yield line.format(number).encode()
            await asyncio.sleep(0.001)

    return Response(200, content=StreamedContent(kind, pieces))


@app.router.get("/stream")
async def stream():
    return streamed(b"text/plain", "piece {}\n", 5)


@app.router.get("/events")
async def events():
    return streamed(b"text/event-stream", "data: {}\n\n", 3)


@app.router.get("/session")
async def session(request: Request):
    request.session["count"] = request.session.get("count", 0) + 1
    return text(str(request.session["count"]))


@app.router.post("/background")
async def later():
    asyncio.get_running_loop().call_soon(done.append, 1)
    return Response(202, content=Content(b"text/plain", b"later"))


@app.router.get("/background")
async def how_many():
    return text(str(len(done)))


@app.router.get("/file")
async def file():
    return Response(200, content=Content(b"text/plain", Path(__file__).read_bytes()))


@app.router.get("/item/{name}")
async def item(name: str, request: Request):
    return json({"name": name, "path": request.url.path.decode()})


@app.router.get("/redirect")
async def elsewhere():
    return redirect("/elsewhere")


@app.router.get("/nothing")
async def nothing():
    return Response(204)


@app.router.get("/boom")
async def boom():
    raise RuntimeError("on purpose")
