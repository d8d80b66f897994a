"""Fixtures and markers that every folder shares.

Not a place for helpers: those are in `harness`.
"""

from __future__ import annotations

import os

import pytest
from harness import HAS_FUSED, uvloop_is_installed

INSTALLED = {"asyncio": True, "uvloop": uvloop_is_installed(), "fused": HAS_FUSED}
LOOPS = [name for name, is_there in INSTALLED.items() if is_there]
if wanted := os.environ.get("BRIDGEHEAD_TEST_LOOPS"):
    # CI takes some of the loops on some Pythons. One that is not there fails, instead of running nothing.
    LOOPS = wanted.split(",")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: long runs; set BRIDGEHEAD_TEST_SOAK=1 to run them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("BRIDGEHEAD_TEST_SOAK") == "1":
        return
    skip = pytest.mark.skip(reason="a long run: set BRIDGEHEAD_TEST_SOAK=1")
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(skip)


@pytest.fixture(scope="module", params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    """Each event loop that is installed, and asyncio's in the fused runtime, as the harness names them."""
    name: str = request.param
    return name
