"""What a service manager passes and is told: sockets, readiness, signs of life; orphans in a container."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path

import pytest
from harness import UVICORN, Server
from harness.server import STARTUP_SECONDS
from harness.workers import imported, who

from bridgehead.activation import numbers, passed
from bridgehead.errors import StartError
from bridgehead.notices import Notices
from bridgehead.supervisor.orphans import reap

pytestmark = pytest.mark.skipif(UVICORN, reason="of processes that are ours")

UNITS = Path(__file__).resolve().parent.parent.parent / "examples" / "deploy" / "systemd"


def listening() -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    return sock


def activated(sock: socket.socket, *options: str, names: str = "http") -> Server:
    """As systemd starts it: the socket is descriptor 3, and the variables name this process."""
    variables = f"LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={names}"
    shell = ("bash", "-c", f'exec 3<&{sock.fileno()}; export {variables}; exec "$@"', "bash")
    return Server("workers_app:app", *options, below=shell, pass_fds=[sock.fileno()], ready=False)


@pytest.mark.parametrize("options", [("--bind", "fd://http"), ("--bind", "fd://http", "--workers", "2")])
def test_a_socket_that_was_passed_is_listened_on_by_its_name(options: tuple[str, ...]) -> None:
    with listening() as sock, activated(sock, *options) as server:
        server.wait_ready()
        assert server.port == sock.getsockname()[1]
        assert who(server) in imported(server)
        server.stop()
        # It is the manager's: who comes between two runs waits.
        with socket.create_connection(sock.getsockname(), 5):
            pass


def test_a_name_that_was_not_passed_ends_the_start() -> None:
    with listening() as sock, activated(sock, "--bind", "fd://https", names="http") as server:
        assert server.wait_exit() == 3
        assert "fd://https: no socket of this name was passed" in server.stderr
        assert "these were passed: http" in server.stderr


def test_sockets_are_ours_only_if_they_were_passed_to_this_process() -> None:
    environ = {"LISTEN_PID": "7", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "http:"}
    assert passed(environ, 7) == ((3, "http"), (4, "unknown"), (5, "unknown"))
    assert passed(environ, 8) == ()
    assert passed({"LISTEN_FDS": "1"}, 8) == ()
    with pytest.raises(StartError, match="no sockets were passed"):
        numbers("http")


class Manager:
    """Hears what it is told."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.settimeout(STARTUP_SECONDS)

    def until(self, word: str) -> str:
        while word not in (said := self.socket.recv(4096).decode()):
            pass
        return said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_manager_is_told_of_readiness_reloads_life_and_the_end(workers: str, tmp_path: Path) -> None:
    manager = Manager(tmp_path)
    env = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "400000"}
    with Server("workers_app:app", "--workers", workers, env=env) as server:
        assert f"MAINPID={server.pid}" in manager.until("READY=1")
        manager.until("WATCHDOG=1")
        server.signal(signal.SIGHUP)
        assert re.search(r"MONOTONIC_USEC=\d+", manager.until("RELOADING=1"))
        assert f"MAINPID={server.pid}" in manager.until("READY=1")
        line = "The reload is complete." if workers == "2" else "Finished server process"
        server.wait_line(line, timeout=STARTUP_SECONDS)
        manager.until("WATCHDOG=1")
        server.signal(signal.SIGTERM)
        manager.until("STOPPING=1")
        server.assert_ended_well()
    manager.socket.close()


BLOCKS = """
import os, socket, time

def tell(words):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(words, os.environ["NOTIFY_SOCKET"])

async def app(scope, receive, send):
    tell(b"BLOCKED")
    time.sleep(0.6)
    tell(b"FREE")
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})
"""


def test_a_process_that_serves_alone_gives_no_sign_of_life_while_its_loop_is_blocked(tmp_path: Path) -> None:
    manager = Manager(tmp_path)
    (tmp_path / "main.py").write_text(BLOCKS)
    env = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "200000"}
    with Server("main:app", "--lifespan", "off", env=env, cwd=tmp_path) as server:
        manager.until("WATCHDOG=1")
        assert server.ask("/").status == 204
        manager.until("BLOCKED")
        assert manager.socket.recv(4096) == b"FREE", "there is nothing in between"
        manager.until("WATCHDOG=1")
    manager.socket.close()


def test_a_manager_is_told_by_a_socket_without_a_file() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("")  # the system chooses a name in the abstract
        name = manager.getsockname().decode()
        Notices({"NOTIFY_SOCKET": f"@{name[1:]}"}).ready()
        manager.settimeout(STARTUP_SECONDS)
        assert manager.recv(4096) == f"READY=1\nMAINPID={os.getpid()}".encode()


def test_signs_of_life_are_twice_as_frequent_as_they_are_waited_for() -> None:
    place = {"NOTIFY_SOCKET": "@nobody-listens-here"}
    assert Notices(place | {"WATCHDOG_USEC": "3000000"}).interval == 1.5
    assert Notices(place | {"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}).interval is None
    assert Notices({"WATCHDOG_USEC": "3000000"}).interval is None
    Notices(place).ready()  # nobody hears it, and that is all


def test_orphans_are_reaped_and_workers_are_left_to_who_started_them() -> None:
    orphan = os.fork()
    if orphan == 0:
        os._exit(0)
    os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)
    assert reap({orphan}) == 0
    assert reap(set()) >= 1
    with pytest.raises(ChildProcessError):
        os.waitpid(orphan, 0)


def test_the_units_say_what_is_there() -> None:
    service, opened = (UNITS / "shop.service").read_text(), (UNITS / "shop.socket").read_text()
    assert "Type=notify" in service
    [name] = re.findall(r"FileDescriptorName=(\w+)", opened)
    assert f"--bind fd://{name}" in service
