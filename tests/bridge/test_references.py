"""References that nobody gives back, as a debug build of CPython counts them: `make references`.

Not objects that the collector sees (`test_remains.py`): a reference too many to None or to a name is none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from harness import Server

pytestmark = pytest.mark.skipif(
    not hasattr(sys, "gettotalrefcount"), reason="counted by a debug build of CPython: make references"
)

REQUESTS = 10_000
# Of a request; what a dictionary or a pool keeps as it grows is spread over all of them.
MOST = 0.1
TARGETS = [
    "/hello",
    *(f"/mixed/{kind}" for kind in ("sleep", "receive", "stream", "timeout", "group", "thread")),
]


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("bridge_app:app", "--loop", loop, "--no-access-log") as server:
        yield server


@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", TARGETS)
def test_ten_thousand_requests_keep_no_reference(server: Server, target: str) -> None:
    def run(times: int) -> int:
        """Who asks again for as long as it works, and a connection for each hundred."""
        for _ in range(times // 100):
            with server.connect() as client:
                for _ in range(100):
                    assert client.ask(target).status == 200
        return int(server.ask("/references").body)

    run(1000)
    before = run(100)
    kept = run(REQUESTS) - before
    print(f"{target}: {kept / REQUESTS:.4f} references a request")
    assert kept <= MOST * REQUESTS
