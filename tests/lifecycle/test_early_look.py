"""What another server has is told before the application is imported, and is not held meanwhile."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import UVICORN, Server
from harness.client import Client, request
from harness.server import STARTUP_SECONDS, has_ipv6

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn imports the application first")

APP = """
import os
os.write(2, b"app: imports\\n")
open("pipe").close()
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With an application whose import lasts until somebody opens a pipe."""
    (tmp_path / "main.py").write_text(APP)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody listens, at 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


TAKEN = [
    (("--port", "{taken}"), "127.0.0.1:{taken} is already in use"),
    (("--host", "localhost", "--port", "{taken}"), "localhost:{taken} is already in use"),
    (("--bind", "127.0.0.1:0", "--bind", "127.0.0.1:{taken}"), "127.0.0.1:{taken} is already in use"),
    (("--bind", ":{taken}"), ":{taken} is already in use"),
    (("--admin", "127.0.0.1:{taken}"), "127.0.0.1:{taken} is already in use"),
    (("--uds", "live"), "unix:live is already in use"),
    (("--uds", "main.py"), "'main.py' exists and is not a socket"),
    (("--uds", "nowhere/live"), "unix:nowhere/live is in a directory that does not exist"),
    (("--fd", "0"), "fd://0 is not an open socket"),
    (("--fd", "{unbound}"), "fd://{unbound} is a socket without an address"),
    (("--host", "192.0.2.1"), "192.0.2.1:0 is not an address of this machine"),  # TEST-NET-1 is nobody's
]


@pytest.mark.parametrize(("options", "problem"), TAKEN)
def test_what_cannot_be_listened_on_is_told_before_the_import(
    options: tuple[str, ...], problem: str, folder: Path, taken: int
) -> None:
    with socket.socket(socket.AF_UNIX) as live, socket.socket() as unbound:
        live.bind(str(folder / "live"))
        live.listen()
        names = {"taken": taken, "unbound": unbound.fileno()}
        words = [each.format(**names) for each in options]
        with Server("main:app", *words, cwd=folder, pass_fds=[unbound.fileno()], ready=False) as server:
            assert server.wait_exit() == 3
            assert problem.format(**names) in server.stderr
            assert "hint: " in server.stderr
            assert "app: imports" not in server.stderr
        assert (folder / "live").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "::" if has_ipv6() else "0.0.0.0"])
def test_nobody_can_connect_while_the_application_is_imported(host: str, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "left"))
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    words = ("--bind", place, "--bind", f"unix:{folder / 'left'}", "--bind", f"unix:{folder / 'new'}")
    with Server("main:app", *words, "--lifespan", "off", cwd=folder, ready=False) as server:
        server.wait_line("app: imports", timeout=STARTUP_SECONDS)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        # Not even taken: another server may be quicker.
        with socket.create_server(("127.0.0.1", port)):
            pass
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
            client.connect(str(folder / "left"))
        assert not (folder / "new").exists()
        os.close(os.open(folder / "pipe", os.O_WRONLY))
        server.wait_ready()
        with Client(("127.0.0.1", port)) as answered:
            answered.send(request("/"))
            assert answered.read_response().body == b"served"
        server.stop()


STARTS = """
import asyncio, os


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        os.write(2, b"app: starts\\n")
        while not os.path.exists("go"):
            await asyncio.sleep(0.01)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        os.write(2, b"app: shutdown\\n")
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})
"""


def test_nobody_can_connect_before_the_application_has_started(loop: str, tmp_path: Path) -> None:
    """A probe that only connects takes who lets it for ready."""
    (tmp_path / "starts.py").write_text(STARTS)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with Server("starts:app", "--loop", loop, "--port", str(port), cwd=tmp_path, ready=False) as server:
        server.wait_line("app: starts", timeout=STARTUP_SECONDS)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        (tmp_path / "go").touch()
        server.wait_ready()
        assert server.ask("/").body == b"served"


def test_an_address_that_is_taken_while_the_application_starts_ends_that_in_order(
    loop: str, tmp_path: Path
) -> None:
    (tmp_path / "starts.py").write_text(STARTS)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with Server("starts:app", "--loop", loop, "--port", str(port), cwd=tmp_path, ready=False) as server:
        server.wait_line("app: starts", timeout=STARTUP_SECONDS)
        with socket.create_server(("127.0.0.1", port)):
            (tmp_path / "go").touch()
            assert server.wait_exit() == 3
    assert f"127.0.0.1:{port} is already in use" in server.stderr
    assert "app: shutdown" in server.stderr
