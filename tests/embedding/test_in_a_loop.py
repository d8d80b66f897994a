"""`await server.serve()` in a loop that somebody else runs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Coroutine
from typing import Any

import pytest
from embedded_app import App
from harness import UVICORN, Client, request, uvloop_is_installed
from harness.embedded import asked, port_of, served, server_of, until_started

import bridgehead
from bridgehead import Config, Server

pytestmark = pytest.mark.skipif(UVICORN, reason="these run Bridgehead by its own names")

HELLO = b"hello from app"


def run_on_asyncio(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def run_on_uvloop(main: Coroutine[Any, Any, None]) -> None:
    if not uvloop_is_installed():
        main.close()
        pytest.skip("uvloop is not installed")
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def run_on_anyio(main: Coroutine[Any, Any, None]) -> None:
    import anyio

    async def call() -> None:
        await main

    anyio.run(call)


@pytest.fixture(params=[run_on_asyncio, run_on_uvloop, run_on_anyio], ids=["asyncio", "uvloop", "anyio"])
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_server_is_one_task_among_others(run: Any) -> None:
    app = App()

    async def main() -> None:
        server = server_of(app)
        async with served(server):
            assert await asked(port_of(server)) == HELLO
            assert await asked(port_of(server), "/echo", method="POST", body=b"x" * 300_000) == b"x" * 300_000
        assert await asyncio.sleep(0, "the loop goes on") == "the loop goes on"

    run(main())
    assert app.events == ["startup", "shutdown"]


@pytest.mark.parametrize("wanted", ["auto", "asyncio"])
@pytest.mark.parametrize("runtime", ["auto", "threaded", "fused"])
def test_the_loop_is_not_ours_whatever_the_options_say(wanted: str, runtime: str) -> None:
    async def main() -> None:
        server = server_of(App(), wanted, runtime=runtime)
        async with served(server):
            assert await asked(port_of(server)) == HELLO

    asyncio.run(main())


def test_the_end_of_a_server_can_be_waited_for_at_its_listener(run: Any) -> None:
    async def main() -> None:
        server = server_of(App())
        async with served(server) as task:
            listening = server.servers[0]
            assert listening.get_loop() is asyncio.get_running_loop()
            closed = asyncio.create_task(listening.wait_closed())
            assert await asked(port_of(server)) == HELLO
            assert not closed.done()
            server.should_exit = True
            await task
            await closed

    run(main())


def test_a_closed_listener_is_waited_for_until_the_last_connection_is_gone(run: Any) -> None:
    async def main() -> None:
        server = server_of(App())
        async with served(server):
            client = Client(("127.0.0.1", port_of(server)))
            client.send(request("/"))
            await asyncio.to_thread(client.read_response)
            listening = server.servers[0]
            listening.close()
            closed = asyncio.create_task(listening.wait_closed())
            client.send(request("/"))
            answer = await asyncio.to_thread(client.read_response)
            assert (answer.body, answer.closes) == (HELLO, False)
            assert not closed.done()
            client.close()
            await closed
            assert server.ready

    run(main())


def test_several_servers_share_a_loop_and_end_each_by_itself(run: Any) -> None:
    apps = [App(f"app {number}") for number in range(3)]

    async def main() -> None:
        servers = [server_of(app) for app in apps]
        async with contextlib.AsyncExitStack() as stack:
            tasks = [await stack.enter_async_context(served(server)) for server in servers]
            ports = [port_of(server) for server in servers]
            assert await asyncio.gather(*map(asked, ports)) == [b"hello from app %d" % n for n in range(3)]
            servers[1].should_exit = True
            await tasks[1]
            assert [app.events for app in apps] == [["startup"], ["startup", "shutdown"], ["startup"]]
            streams = await asyncio.gather(*(asked(ports[n], "/stream") for n in (0, 2, 0, 2)))
            assert [len(each) for each in streams] == [64 * 65536] * 4
            assert await asked(ports[2]) == b"hello from app 2"
        assert [app.events for app in apps] == [["startup", "shutdown"]] * 3

    run(main())


def test_a_stream_goes_on_when_the_server_that_came_last_ends(run: Any) -> None:
    """What waits for room in one server must not wait in another's runtime."""
    app = App()

    async def main() -> None:
        first, second = server_of(app), server_of(App())
        async with served(first):
            async with served(second):
                client = Client(("127.0.0.1", port_of(first)))
                client.send(request("/stream"))
                await asyncio.to_thread(client.read_head)
                assert await asked(port_of(second)) == HELLO
            body = await asyncio.to_thread(lambda: b"".join(client.read_chunks()))
            assert len(body) == 64 * 65536
            client.close()

    run(main())


def test_a_cancelled_server_leaves_no_socket_and_no_request(run: Any) -> None:
    app = App()

    async def main() -> None:
        server = server_of(app)
        task = asyncio.create_task(server.serve())
        await until_started(server, task)
        port = port_of(server)
        with Client(("127.0.0.1", port)) as client:
            client.send(request("/hang"))
            assert await asyncio.to_thread(app.began.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(client.assert_closed)
        with pytest.raises(OSError, match="refused"):
            await asked(port)

    run(main())
    assert sorted(app.events) == ["hang finally", "lifespan cancelled", "startup"]


def test_a_server_that_is_cancelled_while_it_starts_leaves_nothing(run: Any) -> None:
    class Waiting(App):
        async def _live(self, receive: Any, send: Any) -> None:
            await receive()
            waiting.set()
            await super()._live(receive, send)

    app = Waiting()
    waiting = asyncio.Event()

    async def main() -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
        task = asyncio.create_task(server_of(app, port=port).serve())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(OSError, match="refused"):
            await asked(port)

    run(main())
    assert app.events == ["lifespan cancelled"]


def test_a_task_group_that_fails_takes_its_server_with_it() -> None:
    app = App()

    async def main() -> None:
        server = server_of(app)
        async with asyncio.TaskGroup() as group:
            await until_started(server, group.create_task(server.serve()))
            raise ValueError("something else")

    with pytest.raises(ExceptionGroup):
        asyncio.run(main())
    assert app.events == ["startup", "lifespan cancelled"]


def test_a_server_inside_another_frameworks_lifespan() -> None:
    inner = App("inner")
    servers: list[Server] = []

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        servers.append(server_of(inner))
        async with served(servers[0]):
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def main() -> None:
        async with served(server_of(outer, lifespan="on")):
            assert await asked(port_of(servers[0])) == b"hello from inner"

    asyncio.run(main())
    assert inner.events == ["startup", "shutdown"]


def test_a_failing_startup_exits_with_3_and_leaves_the_loop_clean() -> None:
    async def main() -> None:
        with pytest.raises(SystemExit) as end:
            await server_of(App(fails=True)).serve()
        assert end.value.code == 3
        assert isinstance(end.value.__cause__, bridgehead.StartError)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@pytest.mark.parametrize("name", ["asyncio", "uvloop"])
def test_the_loop_factory_makes_the_loop_that_the_options_name(name: str) -> None:
    if name == "uvloop" and not uvloop_is_installed():
        pytest.skip("uvloop is not installed")
    with asyncio.Runner(loop_factory=Config(App(), loop=name).get_loop_factory()) as runner:
        assert type(runner.get_loop()).__module__.partition(".")[0] == name
