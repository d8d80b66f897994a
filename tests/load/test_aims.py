"""What the yardstick says of its aims: where one is met, and that the documents have those that it has."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def yardstick(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(ROOT / "loadtests")
    return SimpleNamespace(
        results=importlib.import_module("results"), workloads=importlib.import_module("workloads").WORKLOADS
    )


def row_of(yardstick: SimpleNamespace, aim: object, **costs: list[float]) -> Any:
    """Bursts of these costs, beside hyper alone at 9 µs and a call of 1."""
    results = yardstick.results
    row = results.Row(replace(yardstick.workloads[0], aim=aim), call=1.0)
    names = {"ours": "bridgehead", "again": "bridgehead again", "hyper": "hyper alone"}
    for name, each in {"hyper": [9.0], **costs}.items():
        bursts = [results.Burst(cpu=cost, rate=1.0, p50=None, p99=None) for cost in each]
        row.servers[names.get(name, name)] = results.Measured(bursts=bursts)
    return row


@pytest.mark.parametrize(
    ("aim", "costs", "told"),
    [
        (1.2, {"ours": [12.0], "again": [12.0]}, "1.20 | 1.2 ✓ |"),
        (1.2, {"ours": [12.1], "again": [12.0, 12.1]}, "1.21 | 1.2 |"),
        (1.2, {"ours": [12.1], "again": [12.0, 12.3]}, "1.21 | 1.2 ✓ |"),
        (1.2, {"ours": [11.0, 12.1, 13.0], "again": [12.0]}, "1.21 | 1.2 |"),  # by the median
        (1.2, {"ours": [12.0]}, "1.20 | 1.2 ✓ |"),
        (1.2, {"ours": [12.0], "hyper": []}, "|  |  | 1.2 |"),  # nothing to judge by
        (None, {"ours": [12.0], "again": [12.0]}, "1.20 |  |"),
        ("below all", {"ours": [12.0], "again": [12.0], "uvicorn": [12.0]}, "1.20 | below all |"),
        ("below all", {"ours": [12.0], "again": [12.0], "uvicorn": [12.1]}, "1.20 | below all ✓ |"),
        ("below all", {"ours": [12.0], "again": [12.0]}, "1.20 | below all |"),
    ],
)
def test_an_aim_is_met_by_the_median_less_half_of_what_the_controls_bursts_differ_by(
    aim: float | str | None, costs: dict[str, list[float]], told: str, yardstick: SimpleNamespace
) -> None:
    [line] = yardstick.results.summary([row_of(yardstick, aim, **costs)]).splitlines()[2:3]
    assert told in line


def test_every_line_of_the_summary_has_as_many_cells_as_its_head(yardstick: SimpleNamespace) -> None:
    refused = row_of(yardstick, 1.2, ours=[12.0])
    refused.servers["bridgehead"].wrong = "status 404"
    lines = yardstick.results.summary(
        [row_of(yardstick, 1.2, ours=[12.0], again=[12.0]), refused]
    ).splitlines()
    assert {line.count("|") for line in lines if line.startswith("|")} == {11}


def test_the_documents_have_the_aims_of_the_yardstick(yardstick: SimpleNamespace) -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    head, table = re.search(r"^(\| workload .*)\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.M).groups()  # type: ignore[union-attr]
    place = [cell.strip() for cell in head.split("|")].index("aim")
    cells = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    written = {line[1]: line[place].removesuffix(" ✓") for line in cells}
    aims = {each.name: "" if each.aim is None else str(each.aim) for each in yardstick.workloads}
    assert written == aims
