"""`uvicorn.supervisors.multiprocess`, as used; uvicorn's own tests ask more: `tests/published`."""

from __future__ import annotations

import importlib
import inspect
import signal
import socket
import sys
from pathlib import Path

import pytest

from bridgehead.compat.uvicorn.config import Config
from bridgehead.compat.uvicorn.supervisors.multiprocess import Multiprocess, Process


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


def test_sockets_come_behind_the_configuration_and_the_target_before_them_as_it_did_in_older_uvicorns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    config, sockets = Config("served:app"), [socket.socket()]
    with sockets[0]:
        for made in (
            Multiprocess(config, sockets),
            Multiprocess(config, sockets=sockets),
            Multiprocess(config, None, sockets),
        ):
            assert (made.sockets, made.target) == (sockets, None)
        for made in (
            Multiprocess(config, print, sockets),
            Multiprocess(config, sockets, print),
            Multiprocess(config, target=print, sockets=sockets),
        ):
            assert (made.sockets, made.target) == (sockets, print)
    assert Process(config, target=print).real_target is print
    assert [*inspect.signature(Multiprocess).parameters][:2] == ["config", "sockets"]
