"""Where a call is that keeps Python's lock, read from memory: each Python keeps its frames in another way.

What else holds a loop is the detective's (`tests/operations/test_detective.py`).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import UVICORN, Server

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn knows nothing of its loop"),
    pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="the system does not show memory"),
]

# Another folder than any library's, with letters of each width in its name.
FOLDER = "é ść 🧭"
HOLDS = """
import ctypes

usleep = ctypes.PyDLL(None).usleep


class Held:
    def __init__(self, times):
        self.times = times

    def steps(self):
        for _ in range(self.times):
            yield [
                usleep(800_000)
                for each in (1,)
            ]


def held(times):
    return (lambda: max(
        len(step) for step in Held(times).steps()
    ))()


async def app(scope, receive, send):
    if scope["type"] == "http":
        held(1)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"held"})
"""
LINE = 1 + HOLDS.splitlines().index("                usleep(800_000)")


@pytest.mark.runtimes
def test_the_line_at_which_a_call_keeps_the_lock_is_told_and_no_other(loop: str, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "holds.py").write_text(HOLDS)
    with Server("holds:app", "--loop", loop, "--slow-step", "100ms", "--app-dir", str(folder)) as server:
        for _ in range(3):
            # A machine that is busy may have whoever reads come late.
            assert server.ask("/", timeout=60.0).body == b"held"
        line = server.wait_line("a C call that holds the GIL")
    assert f" at {folder}/holds.py:{LINE}, in the request GET /: " in line
    assert " or just before it" not in line
    name = line.partition(" so far by ")[2].partition("()")[0]
    # From 3.12 on a list is built where it is written.
    assert name in ("Held.steps", "Held.steps.<locals>.<listcomp>")
