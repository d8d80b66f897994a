"""More clients than there is room for: they wait in the backlog, idle ones make room, and nothing spins."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from harness import Client, Server, request


@contextlib.contextmanager
def idle(server: Server, count: int) -> Iterator[list[Client]]:
    """Clients that have been answered, and keep their connections."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(count)]
        for client in clients:
            assert client.ask("/hello").status == 200
        yield clients


def test_who_is_one_too_many_waits_until_another_has_left(loop: str) -> None:
    # None is idle long enough to make room: the time is what `--timeout-keep-alive` says, where that is less.
    with Server("wire_app:app", "--loop", loop, "--limit-connections", "3") as server:
        running = [server.connect() for _ in range(3)]
        for client in running:
            client.send(request("/until-gone"))
            client.read_head()
        with server.connect() as waiting:
            waiting.send(request("/hello"))
            server.wait_line("New clients wait, since as many connections are open as may be: 3")
            assert not waiting.is_readable()
            running.pop().close()
            assert waiting.read_response().status == 200
        for client in running:
            client.close()


def test_who_has_been_idle_longest_makes_room() -> None:
    options = ["--limit-connections", "10", "--timeout-keep-alive", "1h"]
    with Server("wire_app:app", *options) as server, idle(server, 10) as clients:
        assert server.ask("/hello").status == 200
        clients[0].assert_closed()


def test_those_who_wait_are_answered_when_the_server_stops() -> None:
    with Server("wire_app:app", "--limit-connections", "1") as server:
        running = server.connect()
        running.send(request("/until-gone"))
        running.read_head()
        with server.connect() as waiting:
            waiting.send(request("/hello"))
            server.wait_line("New clients wait")
            server.process.terminate()
            server.wait_line("Shutting down")
            running.close()
            assert waiting.read_response().body == b"hello"
        server.assert_ended_well()


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))


def test_a_limit_fits_the_files_that_there_are() -> None:
    with Server("wire_app:app", preexec_fn=few_files) as server:
        clients = [server.connect() for _ in range(60)]
        for client in clients:
            client.send(request("/until-gone"))
        server.wait_line("New clients wait, since as many connections are open as may be: 51")
        for client in clients:
            client.read_head()
            client.close()
        assert server.ask("/hello").status == 200


def test_without_files_clients_wait_and_it_is_said_once_a_second(loop: str) -> None:
    began = time.monotonic()
    with Server("wire_app:app", "--loop", loop, "--limit-connections", "0", preexec_fn=few_files) as server:
        # Each has a file of the server's, until there are none; the others are in the backlog.
        clients = [server.connect() for _ in range(140)]
        for client in clients:
            client.send(request("/until-gone"))
        server.wait_line("New clients wait, since no connection can be accepted: ")
        for client in clients:
            client.read_head()
            client.close()
        assert server.ask("/hello").status == 200
        lines = [line for line in server.stderr.splitlines() if "New clients wait" in line]
        assert len(lines) <= time.monotonic() - began + 1


def test_as_many_files_may_be_opened_as_the_system_allows() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def fewer() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))

    with Server("wire_app:app", preexec_fn=fewer) as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        [files] = [line.split() for line in limits.splitlines() if line.startswith("Max open files")]
        assert files[3] == files[4] == str(hard)
