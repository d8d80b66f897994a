"""Clients and frameworks that people use: the `websockets` library, aiohttp, Starlette, FastAPI."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator

import aiohttp
import pytest
from harness import APPS
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from bridgehead.testing import Served, running

MESSAGES: list[str | bytes] = ["x", "", "word " * 1000, "é" * 100_000, b"", b"\0\xff" * 40_000]


@pytest.fixture(scope="module", params=["ws", "wss"])
def server(request: pytest.FixtureRequest) -> Iterator[Served]:
    with running("websocket_app:app", cwd=APPS, ssl_self_signed=request.param == "wss") as server:
        yield server


@pytest.fixture
def url(server: Served) -> str:
    return server.ws_url


def trusting(url: str) -> ssl.SSLContext | None:
    """What takes any certificate."""
    if not url.startswith("wss"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def opened(url: str, *subprotocols: str) -> ClientConnection:
    names = [Subprotocol(each) for each in subprotocols] or None
    context = trusting(url)
    if context is not None:
        # This client reads on a thread of its own while it writes, for which Python's ssl had no lock until
        # 3.12.8 and 3.13.1: beside the tickets of TLS 1.3, one request in a hundred never left.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    # Without a proxy of the machine's.
    return connect(url, ssl=context, subprotocols=names, proxy=None)


def test_the_websockets_library_speaks_and_is_answered(url: str) -> None:
    with opened(f"{url}/echo") as client:
        assert [each.name for each in client.protocol.extensions] == ["permessage-deflate"]
        for message in MESSAGES:
            client.send(message)
            assert client.recv() == message
        assert client.ping().wait(10)
    assert client.close_code == 1000
    with opened(f"{url}/end?how=code&code=4001&reason=why") as client:
        with pytest.raises(ConnectionClosedError) as ended:
            client.recv()
        assert ended.value.rcvd is not None
        assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (4001, "why")


def test_aiohttp_speaks_and_is_answered(url: str) -> None:
    async def converse() -> None:
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(f"{url}/echo", ssl=trusting(url) or True, compress=15) as client:
                assert client.compress == 12
                for message in MESSAGES:
                    if isinstance(message, str):
                        await client.send_str(message)
                        assert await client.receive_str() == message
                    else:
                        await client.send_bytes(message)
                        assert await client.receive_bytes() == message
                assert await client.close()
                assert client.close_code == 1000
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(f"{url}/end?how=plain&when=before", ssl=trusting(url) or True)
            assert refused.value.status == 403

    asyncio.run(converse())


def test_starlettes_endpoint_and_its_denial() -> None:
    with running("framework_websockets:starlette", cwd=APPS) as server:
        url = server.ws_url
        with opened(f"{url}/ws", "chat") as client:
            assert client.subprotocol == "chat"
            assert client.response is not None
            assert client.response.headers["x-from"] == "starlette"
            client.send("hello")
            assert client.recv() == "Message text was: hello"
            client.close(3333, "bye")
        server.logs.wait_for("app: left by 3333")
        with pytest.raises(InvalidStatus) as denied:
            opened(f"{url}/deny")
        response = denied.value.response
        assert (response.status_code, response.headers["x-why"], response.body) == (401, "taste", b"not you")


def test_fastapis_chat_of_several_clients() -> None:
    with running("framework_websockets:fastapi", cwd=APPS) as server:
        url = f"{server.ws_url}/ws"
        with opened(f"{url}/1?token=a") as first:
            with opened(f"{url}/2?token=b") as second:
                second.send("hello")
                assert json.loads(second.recv()) == {"you wrote": "hello", "token": "b"}
                said = "Client #2 says: hello"
                assert (first.recv(), second.recv()) == (said, said)
            assert first.recv() == "Client #2 left the chat"
        with pytest.raises(InvalidStatus) as refused:
            opened(f"{url}/3")
        assert refused.value.response.status_code == 403
