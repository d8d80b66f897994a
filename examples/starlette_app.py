"""A Starlette application: a file, an answer with work behind it, a stream.

Run it: serve examples/starlette_app.py

Needs `pip install starlette`. `curl localhost:8000/source` gets this file, with ETag and ranges.
`curl -X POST localhost:8000/jobs/tea` is answered at once, its work is done afterwards, and
`curl localhost:8000/jobs` lists it then. `curl localhost:8000/numbers` streams.
"""

import asyncio

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, JSONResponse, StreamingResponse
from starlette.routing import Route

done = []


async def source(_):
    return FileResponse(__file__, media_type="text/x-python")


async def work(name):
    await asyncio.sleep(0.1)
    done.append(name)


async def begin_job(request):
    name = request.path_params["name"]
    return JSONResponse({"accepted": name}, status_code=202, background=BackgroundTask(work, name))


async def list_jobs(_):
    return JSONResponse({"done": done})


async def numbers(_):
    async def lines():
        for number in range(1000):
            yield f"{number}\n"

    return StreamingResponse(lines(), media_type="text/plain")


app = Starlette(
    routes=[
        Route("/source", source),
        Route("/jobs/{name}", begin_job, methods=["POST"]),
        Route("/jobs", list_jobs),
        Route("/numbers", numbers),
    ]
)
