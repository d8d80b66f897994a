"""The matrix's application in Quart."""

import asyncio

from quart import Quart, Response, redirect, request, send_file, session

app = Quart(__name__)
app.secret_key = "no secret"
done = []


@app.get("/")
async def hello():
    return "hello"


@app.get("/query")
async def query():
    return dict(request.args)


@app.get("/thread")
def in_a_thread():
    return "from a thread"


@app.post("/form")
async def form():
    return dict(await request.form)


@app.post("/upload")
async def upload():
    sent = (await request.files)["file"]
    return {"name": sent.filename, "size": len(sent.read())}


@app.post("/echo")
async def echo():
    return Response(b"".join([piece async for piece in request.body]), mimetype="application/octet-stream")


@app.get("/stream")
async def stream():
    async def pieces():
        for number in range(5):
            yield f"piece {number}\n"
            await asyncio.sleep(0.001)

    return Response(pieces(), mimetype="text/plain")


@app.get("/events")
async def events():
    async def all_events():
        for number in range(3):
            yield f"data: {number}\n\n"

    return Response(all_events(), mimetype="text/event-stream")


@app.get("/session")
async def count():
    session["count"] = session.get("count", 0) + 1
    return str(session["count"])


async def finish():
    done.append(1)


@app.post("/background")
async def later():
    app.add_background_task(finish)
    return "later", 202


@app.get("/background")
async def how_many():
    return str(len(done))


@app.get("/file")
async def file():
    return await send_file(__file__, mimetype="text/plain", conditional=True)


@app.get("/item/<name>")
async def item(name):
    return {"name": name, "path": request.path}


@app.get("/redirect")
async def elsewhere():
    return redirect("/elsewhere")


@app.get("/nothing")
async def nothing():
    return "", 204


@app.get("/boom")
async def boom():
    raise RuntimeError("on purpose")
