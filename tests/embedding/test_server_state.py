"""What a server says of itself by uvicorn's names: `server_state`, its limit, and the wait for what runs."""

# ruff: noqa: ARG002 - ASGI and uvicorn decide which arguments there are
from __future__ import annotations

import asyncio
from typing import Any

import pytest
from embedded_app import App
from harness import UVICORN
from harness.embedded import InThread, asked, port_of, server_of, until_started

from bridgehead import Server

pytestmark = pytest.mark.skipif(UVICORN, reason="these run Bridgehead by its own names")


def test_requests_are_counted_until_the_end_and_by_the_next_run_too() -> None:
    server = server_of(App())
    assert server.server_state.total_requests == 0
    for so_far in (2, 4):
        with InThread(server) as running:
            running.ask("/")
            running.ask("/")
            assert server.server_state.total_requests == so_far
        assert server.server_state.total_requests == so_far
        server.should_exit = server.started = False


def test_the_headers_of_each_answer_are_told_as_they_are_sent() -> None:
    server = server_of(App(), headers=[("x-ours", "yes")])
    names = [name for name, _ in server.server_state.default_headers]
    assert names == [b"date", b"server", b"x-ours"]
    told = dict(server.server_state.default_headers)
    with InThread(server) as running:
        answer = running.ask("/")
    assert answer.header("server") == told[b"server"].decode()
    assert answer.header("x-ours") == "yes"
    assert len(answer.header("date") or "") == len(told[b"date"])
    bare = server_of(App(), date_header=False, server_header=False)
    assert bare.server_state.default_headers == []


def test_a_limit_of_requests_is_told_and_is_the_one_that_ends_the_server() -> None:
    assert server_of(App()).limit_max_requests is None
    assert server_of(App(), limit_max_requests=3, limit_max_requests_jitter=0).limit_max_requests == 3
    drawn = server_of(App(), limit_max_requests=3, limit_max_requests_jitter=2)
    limit = drawn.limit_max_requests
    assert limit in (3, 4, 5)
    with InThread(drawn) as running:
        for _ in range(limit or 0):
            running.ask("/")
        running.join()
    assert drawn.server_state.total_requests == limit


def test_what_only_tells_cannot_be_set() -> None:
    server = server_of(App())
    for owner, name in (
        (server, "limit_max_requests"),
        (server.server_state, "total_requests"),
        (server.server_state, "default_headers"),
    ):
        with pytest.raises(AttributeError):
            setattr(owner, name, 1)


def test_a_program_may_end_a_server_that_ends_already() -> None:
    """As uvicorn's own tests have it: told by a signal, and asked beside that."""
    app, ended = App("app"), list[str]()

    async def end(server: Server, name: str) -> None:
        await server.shutdown()
        ended.append(f"{name} {app.events.count('shutdown')}")

    async def main() -> None:
        server = server_of(app)
        serving = asyncio.create_task(server.serve())
        await until_started(server, serving)
        assert await asked(port_of(server)) == b"hello from app"
        server.should_exit = True
        await asyncio.sleep(0)
        await asyncio.gather(end(server, "one"), end(server, "another"))
        await serving
        await end(server, "late")

    asyncio.run(main())
    assert sorted(ended) == ["another 1", "late 1", "one 1"]


def test_a_shutdown_of_a_subclass_waits_for_what_runs_as_under_uvicorn() -> None:
    """As inspect-ai has it: uvicorn's own steps, one by one."""

    class Mine(Server):
        async def shutdown(self, sockets: Any = None) -> None:
            for each in self.servers:
                each.close()
            for connection in list(self.server_state.connections):
                connection.shutdown()
            waiting = asyncio.create_task(self._wait_tasks_to_complete())
            await asyncio.sleep(0)
            events.append(f"waits: {not waiting.done()}")
            asyncio.get_running_loop().call_soon(release.set)
            await waiting
            events.append(f"left: {self.running}")
            await self.lifespan.shutdown()

    events: list[str] = []

    class Slow(App):
        async def serve_slow(self, scope: Any, receive: Any, send: Any) -> None:
            self.began.set()
            await release.wait()
            await self.serve_hello(scope, receive, send)

    async def main() -> None:
        serving = asyncio.create_task(server.serve())
        await until_started(server, serving)
        asking = asyncio.create_task(asked(port_of(server), "/slow"))
        await asyncio.to_thread(app.began.wait)
        server.should_exit = True
        assert await asking == b"hello from app"
        await serving

    release = asyncio.Event()
    app = Slow()
    server = Mine(server_of(app).config)
    asyncio.run(main())
    assert events == ["waits: True", "left: 0"]
    assert app.events == ["startup", "shutdown"]
