"""Asks by FastMCP's own client: one session, and twenty at once."""

import asyncio
import json
import sys

from fastmcp import Client

URL = f"http://127.0.0.1:{sys.argv[1]}/mcp"
answers = {}


async def ask() -> None:
    steps, logs = [], []

    async def progress(done, total, message):
        steps.append([done, total])

    async def log(message):
        logs.append(message.data)

    async with Client(URL, progress_handler=progress, log_handler=log) as client:
        answers["tools"] = sorted(each.name for each in await client.list_tools())
        answers["add"] = (await client.call_tool("add", {"a": 2, "b": 3})).data
        answers["count"] = (await client.call_tool("count", {"steps": 20})).data
        answers["resource"] = len((await client.read_resource("shelf://tea"))[0].text)
        answers["prompt"] = (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content.text
        try:
            await client.call_tool("add", {"a": "no number", "b": 3})
        except Exception as error:
            answers["refused"] = type(error).__name__
    answers["progress"], answers["log"] = (
        steps,
        [each if isinstance(each, str) else each.get("msg") for each in logs],
    )


async def one(number: int) -> int:
    async with Client(URL) as client:
        return sum([(await client.call_tool("add", {"a": number, "b": each})).data for each in range(5)])


async def main() -> None:
    await ask()
    answers["twenty at once"] = await asyncio.gather(*(one(number) for number in range(20)))
    print(json.dumps(answers))


asyncio.run(main())
