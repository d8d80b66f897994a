"""`Server.run()` on a thread, as test fixtures, notebooks and desktop programs have it."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from embedded_app import App
from harness import UVICORN, request
from harness.embedded import InThread, ask, heard, server_of, wait_until

import bridgehead
from bridgehead import Config, Server

pytestmark = pytest.mark.skipif(UVICORN, reason="these run Bridgehead by its own names")


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return True
    return False


def test_a_server_serves_until_should_exit_is_set(loop: str) -> None:
    app = App()
    server = server_of(app, loop)
    assert not server.started
    with InThread(server) as running:
        assert server.started
        assert running.ask("/").body == b"hello from app"
        assert app.thread is not threading.main_thread()
    assert app.events == ["startup", "shutdown"]


def test_a_request_that_runs_when_should_exit_is_set_is_answered(loop: str) -> None:
    app = App()
    with InThread(server_of(app, loop)) as running, running.connect() as client:
        client.send(request("/slow"))
        app.began.wait(10)
        running.server.should_exit = True
        assert client.read_response().body == b"slow"
        running.join()


def test_a_handler_may_end_its_own_server(loop: str) -> None:
    app = App()
    server = server_of(app, loop)
    app.on_request = lambda: setattr(server, "should_exit", True)
    with InThread(server) as running:
        assert running.ask("/").body == b"hello from app"
        running.join()


def test_force_exit_waits_for_no_request_and_skips_the_shutdown(loop: str) -> None:
    app = App()
    with InThread(server_of(app, loop)) as running, running.connect() as client:
        client.send(request("/hang"))
        app.began.wait(10)
        running.server.force_exit = running.server.should_exit = True
        running.join()
        assert client.read_response().status == 500
    assert app.events == ["startup", "hang finally", "lifespan cancelled"]


def test_force_exit_cuts_a_shutdown_short_that_has_begun(loop: str) -> None:
    app = App()
    with InThread(server_of(app, loop)) as running, running.connect() as client, running.connect() as idle:
        client.send(request("/hang"))
        app.began.wait(10)
        running.server.should_exit = True
        idle.assert_closed()
        running.server.force_exit = True
        running.join()
    assert "shutdown" not in app.events


def test_the_sockets_are_shown_until_the_end_and_the_port_is_free_afterwards(loop: str) -> None:
    server = server_of(App(), loop)
    with InThread(server) as running:
        [listening] = server.servers
        assert listening.is_serving()
        port = running.port
        assert port
    assert listening.sockets == ()
    assert not listening.is_serving()
    with InThread(server_of(App("next"), loop, port=port)):
        assert ask(port).body == b"hello from next"


def test_a_closed_listener_lets_nobody_in_and_running_requests_go_on(loop: str) -> None:
    app = App()
    with InThread(server_of(app, loop)) as running, running.connect() as client:
        client.send(request("/slow"))
        app.began.wait(10)
        port = running.port
        listening = running.server.servers[0]
        assert listening.get_loop().is_running()
        listening.close()
        assert client.read_response().body == b"slow"
        wait_until(lambda: refuses(port), "nobody is let in")


def test_an_idle_connection_outlives_its_closed_listener(loop: str) -> None:
    with InThread(server_of(App(), loop)) as running, running.connect() as idle:
        idle.send(request("/"))
        assert idle.read_response().status == 200
        port = running.port
        listening = running.server.servers[0]
        listening.close()
        assert not listening.is_serving()
        wait_until(lambda: refuses(port), "nobody is let in")
        for _ in range(2):
            idle.send(request("/"))
            answer = idle.read_response()
            assert (answer.status, answer.body, answer.closes) == (200, b"hello from app", False)
        assert running.server.ready


def test_a_closed_listener_leaves_the_other_sockets_of_its_server_open(loop: str) -> None:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [each.getsockname()[1] for each in sockets]
    with InThread(server_of(App(), loop), sockets=sockets) as running:
        running.server.servers[0].close()
        wait_until(lambda: refuses(ports[0]), "nobody is let in")
        assert ask(ports[1]).status == 200
        assert [each.is_serving() for each in running.server.servers] == [False, True]


def test_a_server_runs_again_when_should_exit_is_taken_back(loop: str) -> None:
    app = App()
    server = server_of(app, loop)
    for _ in range(3):
        server.should_exit = server.started = False
        with InThread(server) as running:
            assert running.ask("/").status == 200
    assert app.events == ["startup", "shutdown"] * 3


def test_a_configuration_serves_again_with_another_server(loop: str) -> None:
    app = App()
    config = server_of(app, loop).config
    for _ in range(2):
        with InThread(Server(config)) as running:
            assert running.ask("/").status == 200


def test_a_server_told_to_end_before_it_starts_tries_its_start_as_uvicorn_does() -> None:
    app = App()
    server = server_of(app)
    server.should_exit = True
    server.run()
    assert server.started
    assert app.events == ["startup", "shutdown"]


def test_a_server_that_is_told_during_startup_ends_it(loop: str) -> None:
    class Waiting(App):
        async def _live(self, receive: Any, send: Any) -> None:
            await receive()
            self.began.set()
            await super()._live(receive, send)

    app = Waiting()
    server = server_of(app, loop)

    def end() -> None:
        app.began.wait(10)
        server.should_exit = True

    ender = threading.Thread(target=end)
    ender.start()
    server.run()
    ender.join()
    assert app.events == ["lifespan cancelled"]


def test_a_startup_that_fails_exits_with_3_and_logs_why(loop: str) -> None:
    server = server_of(App(fails=True), loop)
    with heard() as lines, pytest.raises(SystemExit) as end:
        server.run()
    assert end.value.code == 3
    assert isinstance(end.value.__cause__, bridgehead.StartError)
    assert any("no database" in line for line in lines)
    assert not server.started


def test_a_taken_port_exits_with_3() -> None:
    app = App()
    with InThread(server_of(App())) as other:
        server = server_of(app, port=other.port)
        with heard() as lines, pytest.raises(SystemExit) as end:
            server.run()
    assert end.value.code == 3
    assert "already in use" in lines[-1]
    assert app.events == []


def test_an_application_that_is_not_there_exits_with_3() -> None:
    with heard() as lines, pytest.raises(SystemExit) as end:
        server_of("no_such_module:app").run()
    assert end.value.code == 3
    assert "no_such_module" in lines[-1]


def test_sockets_that_the_caller_bound_are_served_and_closed() -> None:
    sockets = [socket.socket() for _ in range(2)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    server = server_of(App())
    with InThread(server, sockets=sockets):
        assert [ask(port).status for port in ports] == [200, 200]
        assert [each.sockets[0].getsockname()[1] for each in server.servers] == ports
    assert all(each.fileno() == -1 for each in sockets)


def test_bind_socket_gives_one_that_listens() -> None:
    config = Config(App(), host="localhost", port=0, log_level="warning")
    bound = config.bind_socket()
    assert bound.family == socket.AF_INET
    with InThread(Server(config), sockets=[bound]):
        assert ask(bound.getsockname()[1]).status == 200


def test_a_running_loop_is_told_to_use_serve() -> None:
    async def main() -> None:
        server_of(App()).run()

    with pytest.raises(RuntimeError, match=r"await server\.serve\(\)"):
        asyncio.run(main())


def test_signal_methods_of_former_days_may_be_overridden_and_assigned() -> None:
    class Quiet(Server):
        def install_signal_handlers(self) -> None:
            raise AssertionError("nobody calls it")

    server = Quiet(server_of(App()).config)
    with InThread(server) as running:
        assert running.ask("/").status == 200
    other: Any = server_of(App())
    other.install_signal_handlers = lambda: None
    with InThread(other) as running:
        assert running.ask("/").status == 200


def test_servers_on_several_threads_serve_at_once(loop: str) -> None:
    with ExitStack() as stack:
        each_running = [
            stack.enter_context(InThread(server_of(App(f"app {number}"), loop))) for number in range(3)
        ]
        for number, running in enumerate(each_running):
            assert running.ask("/").body == b"hello from app %d" % number


def test_many_servers_one_after_another_leave_nothing_open(loop: str) -> None:
    def once() -> None:
        with InThread(server_of(App(), loop)) as running:
            assert running.ask("/").status == 200
            assert running.ask("/stream").status == 200

    once()
    before, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(10):
        once()
    wait_until(lambda: threading.active_count() <= threads, "threads end")
    assert len(os.listdir("/proc/self/fd")) <= before
