"""Figures of idle connections are of connections that live; those that were closed are told instead."""

from __future__ import annotations

import importlib
import select
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from bridgehead.pytest_plugin import ServeApp

LOADTESTS = Path(__file__).resolve().parent.parent.parent / "loadtests"
KEPT = ["-m", "bridgehead", "{app}", "--port={port}", "--log-level=warning"]
LOST = [*KEPT, "--timeout-keep-alive=1ms"]


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Those that measure it, with few connections for a short time."""
    monkeypatch.syspath_prepend(LOADTESTS)
    names = ("idle", "scale", "servers", "special")
    modules = SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    monkeypatch.setattr(modules.scale, "SETTLES", 0.1)
    monkeypatch.setattr(modules.special, "SETTLED", 0.6)
    monkeypatch.setattr(modules.special, "IDLE", 20)
    monkeypatch.setitem(modules.servers.COMMANDS, "kept", KEPT)
    monkeypatch.setitem(modules.servers.COMMANDS, "lost", LOST)
    return modules


def test_whoever_was_closed_is_counted(serve_app: ServeApp, scripts: SimpleNamespace) -> None:
    server = serve_app("apps:hello", cwd=LOADTESTS)
    with ExitStack() as stack:
        clients = scripts.idle.connected(server.port, 150, stack)
        assert len(clients) == 150
        assert scripts.idle.told(clients) == ""
    passing = serve_app("apps:hello", cwd=LOADTESTS, timeout_keep_alive=0.001)
    with ExitStack() as stack:
        clients = scripts.idle.connected(passing.port, 20, stack)
        for client in clients:
            assert select.select([client], [], [], 30)[0]
        assert scripts.idle.told(clients) == "20 of 20 were closed"


def test_what_idle_connections_cost_is_not_told_of_those_that_were_closed(scripts: SimpleNamespace) -> None:
    with scripts.servers.started("kept", "apps:hello", 0) as server:
        assert all(float(cell.replace(",", "")) >= 0 for cell in scripts.scale.idle_cells(server, 20)[2:])
    with scripts.servers.started("lost", "apps:hello", 0) as server:
        assert scripts.scale.idle_cells(server, 20) == ["20 of 20 were closed", "", ""]


def test_both_moments_of_the_idle_table_have_a_figure_or_say_why_not(scripts: SimpleNamespace) -> None:
    table = scripts.special.idle(["kept", "lost"], [0])
    kept, lost = (line.split(" | ") for line in table.splitlines() if line.startswith(("| kept", "| lost")))
    assert len(kept) == len(lost) == 5
    assert not any("refused" in cell for cell in kept)
    assert lost[1:] == ["refused: 20 of 20 were closed", "", "refused: 20 of 20 were closed", " |"]


def test_the_yardstick_measures_ten_thousand_without_the_bounds_that_would_close_them(
    scripts: SimpleNamespace,
) -> None:
    assert "bridgehead unlimited" in scripts.scale.USUAL
    words = scripts.servers.COMMANDS["bridgehead unlimited"]
    assert {"--limit-concurrency=0", "--limit-connections=0"} <= set(words)
