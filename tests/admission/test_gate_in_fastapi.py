"""What a client of FastAPI's is answered when a gate has no slot."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import pytest
from harness import UVICORN

from bridgehead.admission import Gate, NotAdmitted, QueueFull

pytest.importorskip("fastapi")
from fastapi import Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has nothing of the kind")

gate = Gate(1, queue=0)
app = FastAPI()


@gate.limits
async def session() -> AsyncIterator[str]:
    yield "by a dependency that yields"


@gate.limits
async def user() -> str:
    return "by a dependency"


@app.get("/admitted", dependencies=[Depends(gate.admitted)])
async def admitted() -> str:
    return "by its own"


@app.get("/yields")
async def yields(by: Annotated[str, Depends(session)]) -> str:
    return by


@app.get("/returns")
async def returns(by: Annotated[str, Depends(user)]) -> str:
    return by


@app.get("/limited")
@gate.limits
async def limited() -> str:
    return "by itself"


def ask(target: str, *, of: FastAPI = app) -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(of)
        async with httpx.AsyncClient(transport=transport, base_url="http://gate") as client:
            return await client.get(target)

    return asyncio.run(main())


def ask_when_full(target: str, *, of: FastAPI = app) -> httpx.Response:
    asyncio.run(gate.acquire())
    try:
        return ask(target, of=of)
    finally:
        gate.release()


@pytest.mark.parametrize("target", ["/admitted", "/yields", "/returns", "/limited"])
def test_who_gets_no_slot_is_told_to_come_again(target: str) -> None:
    answer = ask_when_full(target)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json() == {"detail": "as many wait for a slot as may"}
    assert ask(target).status_code == 200
    assert gate.gauges().running == 0


@pytest.mark.parametrize("target", ["/admitted", "/yields", "/returns", "/limited"])
def test_an_exception_handler_of_the_applications_own_comes_first(target: str) -> None:
    async def handle(request: Request, error: Exception) -> PlainTextResponse:
        del request
        return PlainTextResponse(f"later: {error}", 429)

    own = FastAPI(exception_handlers={NotAdmitted: handle})
    own.include_router(app.router)
    answer = ask_when_full(target, of=own)
    assert (answer.status_code, answer.text) == (429, "later: as many wait for a slot as may")


def refused() -> NotAdmitted:
    async def main() -> Any:
        async with gate:
            with pytest.raises(NotAdmitted) as raised:
                await user()
            return raised.value

    refusal: NotAdmitted = asyncio.run(main())
    return refusal


def test_a_refusal_is_of_its_kind_with_starlette_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(refused(), QueueFull)
    assert getattr(refused(), "status_code", None) == 503
    monkeypatch.delitem(sys.modules, "starlette.exceptions")
    assert type(refused()) is QueueFull
