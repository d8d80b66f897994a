"""Work after the answer: a queue, a fixed number of workers, and an event that ends them.

Run it: serve examples/queue_workers.py

`curl -d tea localhost:8000/` puts a job into the queue; when it is full the answer is 503. Stop the server
with Ctrl+C: nothing new is taken, what is queued is done, and each worker says its goodbye.
"""

import asyncio

WORKERS = 3
LENGTH = 100  # jobs that may wait: who comes then is told, instead of memory growing


async def work(name, jobs, stopping):
    stopped = asyncio.create_task(stopping.wait())
    while True:
        job = asyncio.create_task(jobs.get())
        await asyncio.wait({job, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not job.done():  # nothing is queued, and nothing will be
            job.cancel()
            break
        await asyncio.sleep(0.01)  # the work itself
        print(f"worker {name} did {job.result()}", flush=True)
    stopped.cancel()
    print(f"worker {name} is done", flush=True)


async def lifespan(scope, receive, send):
    await receive()
    jobs, stopping = asyncio.Queue(LENGTH), asyncio.Event()
    scope["state"]["jobs"] = jobs
    async with asyncio.TaskGroup() as group:
        for name in range(WORKERS):
            group.create_task(work(name, jobs, stopping))
        await send({"type": "lifespan.startup.complete"})
        try:
            await receive()
        finally:
            # Also when this fails or is cancelled: nobody waits for ever for an event that was forgotten.
            stopping.set()
    await send({"type": "lifespan.shutdown.complete"})


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await lifespan(scope, receive, send)
        return
    status = 202
    try:
        scope["state"]["jobs"].put_nowait((await receive()).get("body", b"").decode(errors="replace"))
    except asyncio.QueueFull:
        status = 503
    await send({"type": "http.response.start", "status": status, "headers": [(b"retry-after", b"1")]})
    await send({"type": "http.response.body", "body": b""})
