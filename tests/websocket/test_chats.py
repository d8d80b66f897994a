"""Chats as people write them, with their own libraries: python-socketio, and Django Channels' tutorial."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from harness import APPS
from websockets.exceptions import ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from bridgehead.testing import Served, running

PATIENCE = 30
ALL = ["websocket"], ["polling", "websocket"]


class Guest:
    """A client of python-socketio, and what it heard."""

    def __init__(self) -> None:
        socketio = pytest.importorskip("socketio", reason="python-socketio is not installed")
        self.client: Any = socketio.AsyncClient(reconnection=False)
        self.heard: asyncio.Queue[tuple[str, list[Any]]] = asyncio.Queue()
        self.client.on("*", self.hear)

    async def hear(self, event: str, *words: Any) -> None:
        await self.heard.put((event, list(words)))

    async def enter(self, url: str, name: str, transports: list[str]) -> None:
        await self.client.connect(url, auth={"name": name}, transports=transports, wait_timeout=PATIENCE)

    async def next(self) -> tuple[str, list[Any]]:
        return await asyncio.wait_for(self.heard.get(), PATIENCE)


@pytest.fixture(scope="module")
def socketio_server() -> Iterator[Served]:
    pytest.importorskip("socketio", reason="python-socketio is not installed")
    with running("socketio_app:app", cwd=APPS) as server:
        yield server


@pytest.mark.parametrize("transports", ALL, ids=" then ".join)
def test_two_guests_of_socketio_hear_each_other(socketio_server: Served, transports: list[str]) -> None:
    async def chat() -> None:
        first, second = Guest(), Guest()
        await first.enter(socketio_server.url, "Ann", transports)
        await second.enter(socketio_server.url, "Bob", ["websocket"])
        assert await first.next() == ("joined", ["Bob", "websocket"])
        for words in ("hello", "é" * 5000, b"\0\xff" * 5000):
            assert await first.client.call("say", words, timeout=PATIENCE) == len(words)
            assert await first.next() == await second.next() == ("said", ["Ann", words])
        assert first.client.transport() == transports[-1]
        await first.client.disconnect()
        await second.client.disconnect()

    asyncio.run(chat())
    for name in ("Ann", "Bob"):
        socketio_server.logs.wait_for(f"app: {name} left: ")


def test_a_guest_of_socketio_that_is_refused_is_told_so(socketio_server: Served) -> None:
    socketio = pytest.importorskip("socketio")

    async def enter() -> None:
        client = socketio.AsyncClient(reconnection=False)
        told: list[dict[str, str]] = []
        client.on("connect_error", told.append)
        with pytest.raises(socketio.exceptions.ConnectionError):
            await client.connect(socketio_server.url, transports=["websocket"], wait_timeout=PATIENCE)
        assert told == [{"message": "who are you?"}]

    asyncio.run(enter())


@pytest.fixture(scope="module")
def channels_server() -> Iterator[Served]:
    pytest.importorskip("channels", reason="Django Channels is not installed")
    with running("channels_chat_app:app", cwd=APPS) as server:
        yield server


def entered(server: Served, way: str, page: str | None = None) -> ClientConnection:
    url = f"{server.ws_url}/ws/{way}/"
    return connect(url, origin=Origin(page or server.url), proxy=None, open_timeout=PATIENCE)


@pytest.mark.parametrize(
    ("way", "to", "left"),
    [("chat", "AnonymousUser", "left by 1000"), ("threads", "a thread", "a thread's left by 1000")],
)
def test_guests_of_channels_hear_each_other(channels_server: Served, way: str, to: str, left: str) -> None:
    with entered(channels_server, way) as first, entered(channels_server, "chat") as second:
        first.send(json.dumps({"message": "hello"}))
        assert json.loads(first.recv(PATIENCE)) == {"message": "hello", "to": to}
        assert json.loads(second.recv(PATIENCE)) == {"message": "hello", "to": "AnonymousUser"}
        second.close(1000)
        with pytest.raises(ConnectionClosedOK):
            second.recv(PATIENCE)
        first.send(json.dumps({"message": "alone"}))
        assert json.loads(first.recv(PATIENCE)) == {"message": "alone", "to": to}
    channels_server.logs.wait_for(f"app: {left}")


def test_channels_refuses_a_strangers_page(channels_server: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        entered(channels_server, "chat", page="http://elsewhere.example")
    assert refused.value.response.status_code == 403
