"""What Node makes of streams of bytes: its llhttp, as strict as it comes, in a process of its own.

Not `judges.py`, whose llhttp is another version: httptools brings its own.
Invariant: as many readings as streams, in their order.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from judges import End, Read, Reading

SCRIPT = Path(__file__).with_name("llhttp.js")
# Node begins in a second; on a machine that stands still it may take many.
SECONDS = 300


@cache
def why_not() -> str:
    """Why Node cannot judge; nothing where it can."""
    node = shutil.which("node")
    if node is None:
        return "node is not installed"
    run = subprocess.run(
        [node, SCRIPT], input="[]", capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return "" if run.stdout == "[]" else f"node shows no llhttp: {run.stderr.strip()[-200:]}"


def read_by_node(streams: Sequence[bytes]) -> list[Reading]:
    given = json.dumps([base64.b64encode(each).decode() for each in streams])
    run = subprocess.run(
        ["node", SCRIPT], input=given, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    readings = [_reading(each) for each in json.loads(run.stdout)]
    assert len(readings) == len(streams)
    return readings


def _reading(told: dict[str, Any]) -> Reading:
    return Reading([_read(*each) for each in told["requests"]], End(told["end"]), told["why"])


def _read(method: str, target: str, headers: list[str], body: str) -> Read:
    flat = [each.encode("latin-1") for each in headers]
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    return Read(method.encode(), target.encode("latin-1"), pairs, body.encode("latin-1"))
