"""A stream that nobody reads holds nobody up."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import UVICORN, request
from harness.client import Client
from harness.server import STARTUP_SECONDS, STOP_SECONDS

from bridgehead.unheld import Unheld

FAILS = """
async def app(scope, receive, send):
    if scope["path"] == "/fail":
        raise RuntimeError("of the application's own")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"answered"})
"""


def say_lost(count: int) -> str:
    return f"lost {count}\n"


def test_what_nobody_reads_is_lost_and_told_of_when_somebody_does() -> None:
    reads, writes = os.pipe()
    with open(writes, "w") as stream, open(reads, "rb", buffering=0) as reader:
        unheld = Unheld(stream)
        line = "x" * 99 + "\n"
        for _ in range(1000):
            unheld.write(line, say_lost)
        # A pipe has 64 KiB here.
        first = reader.read(1 << 20)
        count = first.count(b"\n")
        assert 600 < count < 1000
        unheld.write("next\n", say_lost)
        assert reader.read(1 << 20) == f"lost {1000 - count}\nnext\n".encode()
        unheld.write("last\n", say_lost)
        assert reader.read(1 << 20) == b"last\n"


def test_a_line_that_there_is_no_room_for_is_cut_and_the_next_is_a_line_of_its_own() -> None:
    reads, writes = os.pipe()
    with open(writes, "w") as stream, open(reads, "rb", buffering=0) as reader:
        unheld = Unheld(stream)
        unheld.write("y" * 200_000 + "\n", say_lost)
        first = reader.read(1 << 20)
        assert 4096 <= len(first) < 200_000
        unheld.write("next\n", say_lost)
        assert reader.read(1 << 20) == b"\nlost 1\nnext\n"


def test_a_file_and_what_others_wrote_before_are_written_whole(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w", encoding="latin-1", errors="replace") as stream:
        stream.write("others, ")
        Unheld(stream).write("é €\n" + "z" * 100_000, say_lost)
    assert (tmp_path / "log").read_bytes() == "others, é ?\n".encode("latin-1") + b"z" * 100_000


def test_a_stream_that_is_closed_is_not_written_to() -> None:
    reads, writes = os.pipe()
    stream = open(writes, "w")  # noqa: SIM115 - it is closed in the middle
    unheld = Unheld(stream)
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        unheld.write("a\n", say_lost)
    os.close(reads)
    with pytest.raises(OSError, match="fileno"):
        Unheld(io.StringIO())


@pytest.mark.skipif(UVICORN, reason="uvicorn waits for its reader")
def test_a_server_whose_output_nobody_reads_answers_and_stops_in_order(loop: str, tmp_path: Path) -> None:
    """Both in one pipe, as under a container's engine that has stopped."""
    (tmp_path / "fails.py").write_text(FAILS)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    kind, _, runtime = loop.removesuffix("-rust").partition("-")
    words = ["--loop", "uvloop" if "uvloop" in loop else "asyncio", "--port", str(port)]
    words += ["--runtime", "fused" if kind == "fused" or runtime == "fused" else "threaded"]
    command = [sys.executable, "-m", "bridgehead", "fails:app", *words]
    reads, writes = os.pipe()
    with subprocess.Popen(command, cwd=tmp_path, stdout=writes, stderr=writes) as server:
        os.close(writes)
        with connected(port) as client:
            for _ in range(400):
                client.send(request("/fail"))
                assert client.read_response().status == 500
            client.send(request("/"))
            assert client.read_response().body == b"answered"
        server.terminate()
        assert server.wait(STOP_SECONDS) == 0
    with open(reads, "rb") as reader:
        assert b"RuntimeError: of the application's own" in reader.read()


def connected(port: int) -> Client:
    """Once it listens: nobody reads where it says so."""
    deadline = time.monotonic() + STARTUP_SECONDS
    while True:
        try:
            return Client(("127.0.0.1", port))
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
