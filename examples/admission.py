"""A gate before what is scarce: FastAPI handlers that share two connections, and tell how long others wait.

Run it: serve examples/admission.py

`curl localhost:8000/report` takes a tenth of a second and a connection. Ask often enough at once
(`seq 30 | xargs -P 30 -I{} curl -s localhost:8000/report`) and some wait, and the last ones are answered 503.
`curl localhost:8000/gauges` shows the gate.
"""

import asyncio
from dataclasses import asdict

from fastapi import Depends, FastAPI

from bridgehead.admission import Gate

app = FastAPI()
# As many as the pool has connections; more would only wait there, where nobody sees them.
database = Gate(slots=2, queue=20, patience=1.0, name="database")


async def query():
    await asyncio.sleep(0.1)
    return 42


@app.get("/report", dependencies=[Depends(database.admitted)])
async def report():
    """Keep a slot for the whole request."""
    return {"answer": await query()}


@app.get("/two")
async def two():
    """Keep a slot for as long as it takes, and no longer."""
    answers = []
    for _ in range(2):
        async with database:
            answers.append(await query())
    return {"answers": answers}


@app.get("/gauges")
async def gauges():
    return asdict(database.gauges())
