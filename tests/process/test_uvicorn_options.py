"""Options that only uvicorn has a use for: mapped, or warned of, and never passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Server

from bridgehead.cli import read_config
from bridgehead.errors import StartError

APP = """
import asyncio
import contextvars

set_at_start = contextvars.ContextVar("set_at_start", default="unset")


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        set_at_start.set("set")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    loop = type(asyncio.get_running_loop()).__name__
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": f"{set_at_start.get()} {loop}".encode()})


class Mine(asyncio.SelectorEventLoop):
    pass


def broken():
    raise ValueError("no loop today")


def other():
    return "a loop"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the application is."""
    (tmp_path / "served.py").write_text(APP)
    return tmp_path


def answer(folder: Path, *flags: str) -> tuple[str, str]:
    """What a request is told, and what the server said."""
    with Server("served:app", *flags, cwd=folder) as server:
        body = server.ask("/").body.decode()
        server.stop()
        return body, server.stderr


def test_a_request_has_the_context_of_the_lifespan_unless_it_is_reset(folder: Path) -> None:
    assert answer(folder)[0].startswith("set ")
    assert answer(folder, "--reset-contextvars")[0].startswith("unset ")


def test_a_loop_may_be_made_by_a_factory_of_the_application(folder: Path) -> None:
    assert answer(folder, "--loop", "served:Mine")[0] == "set Mine"


def test_python_s_own_loop_is_taken_for_none(folder: Path) -> None:
    assert "EventLoop" in answer(folder, "--loop", "none")[0]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("served:broken", "--loop 'served:broken' gave no loop: ValueError: no loop today"),
        ("served:other", "--loop 'served:other' gave 'a loop', which is no event loop"),
        ("nowhere:loop", "--loop 'nowhere:loop' gave no loop: ModuleNotFoundError"),
    ],
)
def test_a_factory_that_gives_no_loop_ends_the_start(folder: Path, name: str, sentence: str) -> None:
    server = Server("served:app", "--loop", name, cwd=folder, ready=False, allow=["Traceback"])
    with server:
        assert server.wait_exit() == 3
        assert sentence in server.stderr


def test_a_parser_of_uvicorns_is_one_warning(folder: Path) -> None:
    _, said = answer(folder, "--http", "h11")
    assert said.count("--http h11 changes nothing") == 1
    assert "--http" not in answer(folder, "--http", "auto")[1]


@pytest.mark.parametrize("word", ["websockets", "websockets-sansio", "wsproto"])
def test_a_library_of_uvicorns_is_one_warning(folder: Path, word: str) -> None:
    _, said = answer(folder, "--ws", word)
    assert said.count(f"--ws {word} changes nothing") == 1


def test_uvicorns_third_loop_is_that_of_its_package(folder: Path) -> None:
    (folder / "zuvloop.py").write_text("import asyncio\n\nnew_event_loop = asyncio.SelectorEventLoop\n")
    assert "SelectorEventLoop" in answer(folder, "--loop", "zuvloop")[0]
    assert read_config(["x:app"], {"UVICORN_LOOP": "zuvloop"}).loop == "zuvloop:new_event_loop"


def test_the_size_of_h11s_events_is_that_of_a_head() -> None:
    config = read_config(["x:app", "--h11-max-incomplete-event-size", "64k"], {})
    assert config.limit_header_bytes == 64 * 1024
    both = read_config(["x:app", "--h11-max-incomplete-event-size", "64k", "--limit-header-bytes", "1k"], {})
    assert both.limit_header_bytes == 1024
    assert (
        read_config(["x:app"], {"UVICORN_H11_MAX_INCOMPLETE_EVENT_SIZE": "9000"}).limit_header_bytes == 9000
    )


def test_a_protocol_class_is_refused() -> None:
    with pytest.raises(StartError, match="HTTP is spoken in Rust here"):
        read_config(["x:app", "--http", "mine:Protocol"], {})
