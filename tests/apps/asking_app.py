"""A service that passes on what another says, whose address is in `UPSTREAM`; 502 where that is broken."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from bridgehead.testing import Ledgered


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    upstream = os.environ["UPSTREAM"]
    async with httpx.AsyncClient(base_url=upstream, timeout=60, trust_env=False) as client:
        yield {"client": client}


async def whole(request: Request) -> Response:
    """All of it, once it is there."""
    try:
        answer = await request.state.client.get("/")
    except httpx.TransportError as problem:
        return PlainTextResponse(repr(problem), 502)
    return Response(answer.content, 200 if answer.status_code == 200 else 502)


async def stream(request: Request) -> Response:
    """Piece by piece, as it comes."""

    async def pieces() -> AsyncIterator[bytes]:
        async with request.state.client.stream("GET", "/") as answer:
            async for piece in answer.aiter_bytes():
                yield piece

    return StreamingResponse(pieces())


app = Ledgered(Starlette(routes=[Route("/", whole), Route("/stream", stream)], lifespan=lifespan))
