"""Asks by the SDK's own client: one session after another, and twenty at once."""

import asyncio
import json
import sys

from mcp import Client

URL = f"http://127.0.0.1:{sys.argv[1]}/mcp"
answers = {}


async def ask() -> None:
    steps = []

    async def heard(progress, total, message):
        steps.append([progress, total, message])

    async with Client(URL) as client:
        answers["tools"] = sorted(each.name for each in (await client.list_tools()).tools)
        answers["add"] = (await client.call_tool("add", {"a": 2, "b": 3})).structured_content
        counted = await client.call_tool("count", {"steps": 30}, progress_callback=heard)
        answers["count"] = counted.content[0].text
        failed = await client.call_tool("fail", {})
        answers["fail"] = [failed.is_error, failed.content[0].text]
        answers["resource"] = len((await client.read_resource("shelf://tea")).contents[0].text)
        answers["prompt"] = (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content.text
        answers["progress"] = steps


async def one(number: int) -> int:
    async with Client(URL) as client:
        sums = [await client.call_tool("add", {"a": number, "b": each}) for each in range(5)]
    return sum(each.structured_content["result"] for each in sums)


async def main() -> None:
    await ask()
    answers["twenty at once"] = await asyncio.gather(*(one(number) for number in range(20)))
    print(json.dumps(answers))


asyncio.run(main())
