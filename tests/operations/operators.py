"""The port for operators, as its tests ask it.

Not a server: `Server` starts one, with an address that is free.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Server

PATIENCE = 20.0


class Operators:
    """Asks on a connection of its own each time, as probes do."""

    def __init__(self, server: Server) -> None:
        line = server.wait_line("Operators are answered on ", timeout=PATIENCE)
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, line
        self.port = int(found[1])

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def samples(self) -> dict[str, float]:
        """Every sample by its name and labels."""
        _, text = self.ask("/metrics")
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name.removesuffix("{}"): float(value) for name, _, value in lines}

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.ask("/status.json")[1])
        return status

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, self.ask("/metrics")[1]
            time.sleep(0.01)
