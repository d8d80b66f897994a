"""Early hints in HTTP/1.1: not offered, unless the operator says that the clients take them.

Their order among the answers of a connection is shown by `tests/it/early_hints.rs` of the network.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import aiohttp
import httpx
import pytest
from harness import UVICORN, Client, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no early hints")

names = (f"hints-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("wire_app:app", "--loop", loop, "--http1-early-hints") as server:
        yield server


def ask(client: Client, server: Server, name: str) -> None:
    client.send(request(f"/hinted?name={name}"))
    hint = client.read_response()
    assert (hint.status, hint.reason, hint.body) == (103, "Early Hints", b"")
    assert hint.headers == [
        ("link", "</a.css>; rel=preload; as=style"),
        ("link", "</b.js>; rel=preload; as=script"),
    ]
    server.ring(name)
    final = client.read_response()
    assert (final.status, final.body) == (200, b"hinted")


def test_hints_come_before_the_application_has_made_its_answer(server: Server) -> None:
    with server.connect() as client:
        for _ in range(3):
            name = next(names)
            ask(client, server, name)
            assert server.note(f"{name}-offered") is True
        client.assert_open()


def test_a_client_of_1_0_is_not_offered_them(server: Server) -> None:
    name = next(names)
    with server.connect() as client:
        client.send(f"GET /hinted?name={name} HTTP/1.0\r\nHost: test\r\n\r\n".encode())
        assert client.read_response().body.startswith(b"MisuseError: ")
    assert server.note(f"{name}-offered") is False


def test_without_the_option_nobody_of_http1_is_offered_them() -> None:
    name = next(names)
    with Server("wire_app:app") as server:
        body = server.ask(f"/hinted?name={name}").body
        assert body.startswith(b"MisuseError: ")
        assert b"--http1-early-hints" in body
        assert server.note(f"{name}-offered") is False


def test_clients_that_skip_interim_answers_have_the_answer(server: Server) -> None:
    url = f"http://127.0.0.1:{server.port}/hinted?name="

    async def by_aiohttp(name: str) -> bytes:
        async with aiohttp.ClientSession() as session, session.get(url + name) as answer:
            return await answer.read()

    name = next(names)
    server.ring(name)
    assert httpx.get(url + name).content == b"hinted"
    name = next(names)
    server.ring(name)
    assert asyncio.run(by_aiohttp(name)) == b"hinted"
