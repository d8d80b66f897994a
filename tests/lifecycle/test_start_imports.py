"""What a plain start leaves alone: each module that nobody asked for costs every start its milliseconds."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from harness import UVICORN, Server

if TYPE_CHECKING:
    from pathlib import Path

# Of features that have to be asked for.
OURS = {
    f"bridgehead.{name}"
    for name in (
        "certificates",
        "channel",
        "child",
        "compat",
        "ctl",
        "discovery",
        "env_file",
        "load",
        "messages",
        "offspring",
        "print_config",
        "reload",
        "succession",
        "supervisor",
        "testing",
        "watched",
    )
}
# What they need, or what something lighter does as well.
LIBRARIES = {
    "datetime",
    "email",
    "encodings.idna",
    "http",
    "importlib.metadata",
    "json",
    "multiprocessing",
    "platform",
    "secrets",
    "sysconfig",
    "tempfile",
    "tomllib",
    "unicodedata",
    "urllib.request",
}
TELLS = """
import sys

async def app(scope, receive, send):
    names = " ".join(sys.modules).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": names})
"""


@pytest.mark.skipif(UVICORN, reason="of Bridgehead's own modules")
def test_a_plain_start_imports_nothing_that_nobody_asked_for(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(TELLS)
    # A project that depends on us is not one that has settings for us.
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\ndependencies = ["bridgehead"]\n')
    bare = subprocess.run(
        [sys.executable, "-c", "import asyncio, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    with Server("plain:app", cwd=tmp_path) as server:
        imported = set(server.ask("/").body.decode().split())
    assert "bridgehead.worker" in imported
    assert (OURS | LIBRARIES) & imported - set(bare.stdout.split()) == set()
