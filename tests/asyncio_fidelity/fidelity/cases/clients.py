"""`httpx.AsyncClient` in a handler, against a server of the case's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from fidelity.account import Seen
from fidelity.registry import case


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """A little HTTP: `/slow` never answers, `/chunks` streams, the rest says its path."""

    serving: set[asyncio.Task[object] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1]
                if path == b"/slow":
                    await reader.read()
                    return
                if path == b"/chunks":
                    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                    for _ in range(3):
                        writer.write(b"5\r\nchunk\r\n")
                        await asyncio.sleep(0)
                    writer.write(b"0\r\n\r\n")
                else:
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(path), path))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        # The clients are gone, so each of them comes to its end.
        await asyncio.gather(*filter(None, serving))


@case()
async def one_call(seen: Seen) -> None:
    async with serving() as url, httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        answer = await client.get(f"{url}/hello")
        seen(answer.status_code, answer.text)


@case()
async def calls_one_after_another(seen: Seen) -> None:
    async with serving() as url, httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        seen([(await client.get(f"{url}/{number}")).text for number in range(5)])


@case()
async def calls_at_once(seen: Seen) -> None:
    async with serving() as url, httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        answers = await asyncio.gather(*(client.get(f"{url}/{number}") for number in range(8)))
        seen([answer.text for answer in answers])


@case()
async def a_stream(seen: Seen) -> None:
    async with (
        serving() as url,
        httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client,
        client.stream("GET", f"{url}/chunks") as answer,
    ):
        seen(b"".join([piece async for piece in answer.aiter_raw()]))


@case()
async def a_call_times_out(seen: Seen) -> None:
    async with serving() as url, httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        try:
            await client.get(f"{url}/slow", timeout=httpx.Timeout(60, read=0.05))
        except httpx.ReadTimeout as error:
            seen(type(error))
        seen((await client.get(f"{url}/next")).text)


@case()
async def a_call_is_cancelled(seen: Seen) -> None:
    async with serving() as url, httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        try:
            async with asyncio.timeout(0.05):
                await client.get(f"{url}/slow")
        except TimeoutError as error:
            seen(type(error))
        seen((await client.get(f"{url}/next")).text)


@case()
async def nobody_answers(seen: Seen) -> None:
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        try:
            await client.get("http://127.0.0.1:1/")
        except httpx.ConnectError as error:
            seen(type(error))


@case()
async def a_client_outlives_a_request(seen: Seen) -> None:
    async with serving() as url, httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        first = (await client.get(f"{url}/first")).text
        more: list[str] = []

        async def call() -> None:
            more.append((await client.get(f"{url}/second")).text)

        await seen.world.elsewhere(call)
        seen(first, more, (await client.get(f"{url}/third")).text)
