"""What programs override of a server, and the steps they call one by one."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

import pytest
from embedded_app import App
from harness import UVICORN
from harness.embedded import InThread, ask, asked, port_of, server_of, until_started

from bridgehead import Config, Server

pytestmark = pytest.mark.skipif(UVICORN, reason="these run Bridgehead by its own names")


def quiet(app: Any, **options: Any) -> Config:
    usual: dict[str, Any] = {"port": 0, "log_level": "warning"}
    return Config(app, **usual | options)


def test_every_step_is_called_by_its_name_and_in_order() -> None:
    steps: list[str] = []

    class Steps(Server):
        async def serve(self, sockets: list[socket.socket] | None = None) -> None:
            steps.append("serve")
            await super().serve(sockets)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            steps.append("startup")
            await super().startup(sockets=sockets)
            assert self.started

        async def main_loop(self) -> None:
            steps.append("main_loop")
            await super().main_loop()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            steps.append("shutdown")
            await super().shutdown(sockets=sockets)

    with InThread(Steps(quiet(App()))) as running:
        assert running.ask("/").status == 200
    assert steps == ["serve", "startup", "main_loop", "shutdown"]


def test_an_overridden_tick_is_asked_again_and_again() -> None:
    class Ticking(Server):
        ticks = 0

        async def on_tick(self, counter: int) -> bool:
            assert counter == self.ticks
            self.ticks += 1
            return await super().on_tick(counter) or self.ticks == 3

    server = Ticking(quiet(App()))
    server.run()
    assert server.ticks == 3
    assert server.started


def test_a_tick_that_nobody_overrides_is_not_asked_again() -> None:
    asked_for: list[bool] = []

    class Looking(Server):
        async def main_loop(self) -> None:
            original = self.on_tick
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Server, "on_tick", lambda _, counter: looked(original, counter))
                await super().main_loop()

    async def looked(original: Any, counter: int) -> bool:
        asked_for.append(True)
        end: bool = await original(counter)
        return end

    with InThread(Looking(quiet(App()))) as running:
        assert running.ask("/slow").status == 200
    assert len(asked_for) == 2


def test_should_exit_may_be_a_property_of_a_subclass() -> None:
    class Told(Server):
        def __init__(self, config: Config) -> None:
            self.told = False
            super().__init__(config)

        @property
        def should_exit(self) -> bool:
            return self.told

        @should_exit.setter
        def should_exit(self, value: bool) -> None:
            self.told = value

    server = Told(quiet(App()))
    with InThread(server) as running:
        assert running.ask("/").status == 200
        server.told = True
        running.join()


def test_capture_signals_may_be_replaced() -> None:
    server: Any = Server(quiet(App()))
    server.capture_signals = contextlib.nullcontext
    with InThread(server) as running:
        assert running.ask("/").status == 200


def test_the_steps_may_be_called_one_by_one() -> None:
    app = App()
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    port = bound.getsockname()[1]

    async def main() -> None:
        config = quiet(app, host="ignored.invalid")
        server = Server(config)
        config.load()
        assert config.loaded
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[bound])
        assert server.started
        task = asyncio.create_task(server.main_loop())
        assert await asked(port) == b"hello from app"
        server.should_exit = True
        await task
        await server.shutdown(sockets=[bound])

    asyncio.run(main())
    assert app.events == ["startup", "shutdown"]


def test_serving_without_the_capture_of_signals() -> None:
    app = App()
    server = server_of(app)
    app.on_request = lambda: setattr(server, "should_exit", True)

    async def main() -> None:
        task = asyncio.create_task(server._serve())
        await until_started(server, task)
        assert await asked(port_of(server)) == b"hello from app"
        await task

    asyncio.run(main())
    assert app.events == ["startup", "shutdown"]


def test_a_configuration_may_load_in_its_own_way() -> None:
    app = App("loaded otherwise")

    class Own(Config):
        note = "an attribute of its own"

        def load(self) -> None:
            super().load()
            self.loaded_app = app

    config = Own(App(), port=0, log_level="warning")
    config.extra = 1
    with InThread(Server(config)) as running:
        assert ask(running.port).body == b"hello from loaded otherwise"
