"""A fork in the application leaves parent and child sane."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest
from harness import Client, Server, request
from harness.processes import open_descriptors


@pytest.fixture
def server(loop: str) -> Iterator[Server]:
    # Python 3.12 warns of forks beside threads: true, and not ours to hide from the application.
    with Server("fork_app:app", "--loop", loop, env={"PYTHONWARNINGS": "ignore"}) as server:
        yield server


@contextlib.contextmanager
def killed_at_last(child: int) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, SIGKILL)


def test_the_parent_serves_on(server: Server) -> None:
    child = server.ask("/fork").json()
    with killed_at_last(child):
        for _ in range(20):
            assert server.ask("/hello").body == b"hello"


def test_the_child_ends_by_sigterm_and_the_parent_does_not(server: Server) -> None:
    child = server.ask("/fork").json()
    with killed_at_last(child):
        os.kill(child, SIGTERM)
        assert server.ask(f"/wait?pid={child}").json() == -SIGTERM
    assert server.ask("/hello").body == b"hello"


def test_a_connection_ends_when_the_parent_ends_it_though_the_child_lives(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/fork", headers=[("Connection", "close")])
        with killed_at_last(response.json()):
            client.assert_closed()


def test_connections_that_were_open_at_the_fork_go_on_and_end(server: Server) -> None:
    with server.connect() as other, server.connect() as client:
        other.assert_open()
        child = client.ask("/fork").json()
        with killed_at_last(child):
            for connection in (other, client):
                connection.assert_open()
                connection.send(request("/hello", headers=[("Connection", "close")]))
                assert connection.read_response().body == b"hello"
                connection.assert_closed()


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_the_child_keeps_no_socket_and_no_second_stdout_of_ours(server: Server) -> None:
    with server.connect() as other:
        other.assert_open()
        child = server.ask("/fork-and-wait").json()
        with killed_at_last(child):
            sockets = {each for each in open_descriptors(server.pid) if each.startswith("socket:")}
            stdout = os.readlink(f"/proc/{child}/fd/1")
            assert open_descriptors(server.pid).count(stdout) == 2
            assert open_descriptors(child).count(stdout) == 1
            # What is shared are pairs that wake a thread: none of them is bound or connected to an address.
            shared = {each.strip("socket:[]") for each in sockets.intersection(open_descriptors(child))}
            assert not shared.intersection(inodes_of_tcp())


def inodes_of_tcp() -> set[str]:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return {line.split()[9] for line in lines}


def test_the_end_of_the_child_disturbs_nothing(server: Server) -> None:
    with server.connect() as other, server.connect() as client:
        other.assert_open()
        for _ in range(5):
            assert client.ask("/fork-and-exit").json() == ["from the child", 4]
            other.assert_open()


def test_the_child_takes_no_connection_and_no_request(server: Server) -> None:
    child = server.ask("/fork").json()
    with killed_at_last(child):
        clients = [server.connect() for _ in range(50)]
        for client in clients:
            client.assert_open()


def test_the_port_is_free_after_the_end_of_the_parent(server: Server) -> None:
    child = server.ask("/fork").json()
    with killed_at_last(child):
        port = server.port
        server.stop()
        with Server("fork_app:app", "--port", str(port)) as successor:
            assert successor.ask("/hello").body == b"hello"


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_who_forks_under_load_disturbs_no_other_request_and_leaves_no_descriptor(server: Server) -> None:
    targets = {
        "/fork-and-exit": ["from the child", 4],
        "/pool": None,
        "/fork-by-subprocess": 0,
    }
    for target in targets:
        server.ask(target)
    before = len(open_descriptors(server.pid))
    stop = threading.Event()
    served: list[bytes] = []

    def hammer() -> None:
        with server.connect() as client:
            while not stop.is_set():
                served.append(client.ask("/hello").body)

    hammers = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in hammers:
        thread.start()
    try:
        for target, due in list(targets.items()) * 10:
            answer = server.ask(target)
            assert answer.status == 200
            assert due is None or answer.json() == due
    finally:
        stop.set()
        for thread in hammers:
            thread.join(20)
    assert set(served) == {b"hello"}
    until = time.monotonic() + 20
    # A connection may be about to close.
    while len(open_descriptors(server.pid)) > before:
        assert time.monotonic() < until, open_descriptors(server.pid)
        time.sleep(0.05)


def test_a_signal_to_the_parent_is_no_signal_to_the_child(server: Server) -> None:
    child = server.ask("/fork").json()
    with killed_at_last(child):
        server.stop()
        os.kill(child, 0)


def test_a_forked_process_runs_a_loop_of_its_own(server: Server) -> None:
    assert server.ask("/process?target=loop&join=yes").json()["code"] == 9
    assert server.ask("/hello").body == b"hello"


def test_a_forked_process_can_be_terminated(server: Server) -> None:
    child = server.ask("/process?target=sleep&join=no").json()["pid"]
    with killed_at_last(child):
        os.kill(child, SIGTERM)
        assert server.ask(f"/wait?pid={child}").json() == -SIGTERM


def test_a_forked_process_has_the_default_handlers(server: Server) -> None:
    assert server.ask("/process?target=handlers&join=yes").json()["code"] == 0


def test_a_forked_pool_computes(server: Server) -> None:
    assert server.ask("/pool").json() == [45] * 4
    assert server.ask("/hello").body == b"hello"


def test_a_forked_process_has_its_own_files_and_so_have_its_children() -> None:
    with Server("fork_app:app", env={"PYTHONWARNINGS": "ignore"}) as server:
        for _ in range(8):
            server.connect().assert_open()
        assert server.ask("/process?target=forks&join=yes").json()["code"] == 0


def test_a_forked_process_runs_a_server_of_its_own(server: Server) -> None:
    child = server.ask("/server").json()
    with killed_at_last(child["pid"]):
        with Client(("127.0.0.1", child["port"])) as client:
            for _ in range(2):
                assert client.ask("/hello").body == b"hello"
            assert client.ask("/fork-and-leave?end=exit").json() == 5
            assert client.ask("/hello").body == b"hello"
        assert server.ask("/hello").body == b"hello"
        os.kill(child["pid"], SIGTERM)
        assert server.ask(f"/wait?pid={child['pid']}").json() == -SIGTERM


@pytest.mark.parametrize("end", ["exit", "return"])
def test_a_child_that_leaves_its_handler_ends(server: Server, end: str) -> None:
    code = {"exit": 5, "return": 0}[end]
    with server.connect() as client:
        assert client.ask(f"/fork-and-leave?end={end}").json() == code
    assert server.ask("/hello").body == b"hello"


def test_a_child_of_the_lifespan_does_not_hold_the_port(loop: str) -> None:
    with Server("fork_app:forks_in_its_lifespan", "--loop", loop, env={"PYTHONWARNINGS": "ignore"}) as server:
        child = server.ask("/child").json()
        with killed_at_last(child):
            port = server.port
            server.stop()
            os.kill(child, 0)
            with Server("fork_app:app", "--port", str(port)) as successor:
                assert successor.ask("/hello").body == b"hello"
