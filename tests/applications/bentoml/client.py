"""Asks by BentoML's own clients."""

import asyncio
import json
import sys
from pathlib import Path

import bentoml

url = f"http://127.0.0.1:{sys.argv[1]}"
answers = {}

with bentoml.SyncHTTPClient(url) as client:
    answers["ready"] = client.is_ready()
    answers["greet"] = client.greet(name="Ada")
    answers["count"] = "".join(client.count(steps=200))
    Path("file.bin").write_bytes(b"x" * 3_000_000)
    answers["size"] = client.size(file=Path("file.bin"))
    try:
        client.greet(name=[1, 2])
    except bentoml.exceptions.BentoMLException as error:
        answers["wrong"] = [type(error).__name__, int(error.error_code)]


async def many() -> list:
    async with bentoml.AsyncHTTPClient(url) as client:
        return await asyncio.gather(*(client.double(numbers=[number]) for number in range(20)))


answers["batches"] = asyncio.run(many())
print(json.dumps(answers))
