"""The threads behind `asyncio.to_thread`, as the application and its operators see them."""

from __future__ import annotations

from typing import Any

import pytest
from harness import UVICORN, Server
from operators import Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")


def executor(server: Server) -> Any:
    return server.ask("/snapshot").json()["executor"]


def test_an_executor_that_the_application_has_set_is_counted_on_and_one_of_its_own_kind_is_said_to_be_hidden(
    loop: str,
) -> None:
    with Server("health_app:app", "--loop", loop, "--admin", "127.0.0.1:0") as server:
        operators = Operators(server)
        assert executor(server)["threads"] == 0
        server.ask("/replace-threads?most=3")
        assert executor(server) == {"queued": 0, "threads": 1, "most": 3}
        threads = 'bridgehead_executor_threads{worker="0"}'
        operators.until(lambda: operators.samples()[threads] == 1)
        server.ask("/replace-threads?most=0")
        assert executor(server) is None
        operators.until(lambda: threads not in operators.samples())
        [worker] = operators.status()["workers"]
        assert (worker["loop"]["executor_queue"], worker["loop"]["executor_threads"]) == (None, None)
