"""`uvicorn.supervisors.multiprocess`, as used; uvicorn's own tests ask more: `tests/published`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from bridgehead.compat.uvicorn.config import Config
from bridgehead.compat.uvicorn.supervisors.multiprocess import Process


def test_a_process_that_dies_before_it_answers_is_known_at_once_to_be_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The child cannot import what this process has: it dies while it is asked, and never answers.
    (tmp_path / "only_here.py").write_text("def serve(sockets): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    target = importlib.import_module("only_here").serve
    (tmp_path / "only_here.py").write_text("raise SystemExit(3)\n")
    process = Process(Config("served:app"), target)
    process.start()
    assert not process.ping(timeout=3600)
    process.join()
    assert process.exitcode == 3
    sys.modules.pop("only_here")
