"""What applications do to a loop itself works in each runtime."""

from __future__ import annotations

import pytest
from harness import UVICORN, Server, request
from harness.server import COMPLAINTS


@pytest.mark.skipif(UVICORN, reason="the names of loops are ours")
def test_a_handler_may_stop_the_loop(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop, allow=COMPLAINTS) as server, server.connect() as client:
        client.send(request("/stop-the-loop"))
        assert server.wait_exit() != 0
        assert "Event loop stopped" in server.stderr


@pytest.mark.parametrize("runtime", ["fused", "threaded"])
def test_debug_mode_tells_of_a_handler_that_blocks(runtime: str) -> None:
    options = ("--loop", "asyncio", "--runtime", runtime)
    env = {"PYTHONASYNCIODEBUG": "1"}
    with Server("lifecycle_app:app", *options, env=env, allow=COMPLAINTS) as server:
        assert server.ask("/block?seconds=0.2").status == 200
        assert "Executing" in server.wait_line("took 0.2")
