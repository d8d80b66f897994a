"""The dashboard of examples/observability shows every metric that is documented, and none that is not there.

Not what its queries find: Prometheus judges that (`test_queries.py`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Server, request
from operators import PATIENCE, Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")

ROOT = Path(__file__).resolve().parents[2]
NAME = r"(?:bridgehead|http_server)_\w+"


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((ROOT / "examples/observability/dashboard.json").read_text())
    return read


def asked_for(dashboard: dict[str, Any]) -> set[str]:
    """Names of samples."""
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return {name for query in queries for name in re.findall(NAME, query)}


def test_every_metric_that_is_documented_is_on_the_dashboard(dashboard: dict[str, Any]) -> None:
    page = (ROOT / "docs/operations.md").read_text()
    metrics = page.partition("## The metrics")[2].partition("## Dashboard and alerts")[0]
    rows = [line.split("|")[1] for line in metrics.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(f"`({NAME})`", row)}
    assert len(documented) > 40
    shown = {re.sub(r"_(bucket|count)$", "", name) for name in asked_for(dashboard)}
    assert shown == documented


def test_a_server_shows_everything_that_the_dashboard_and_the_alerts_ask_for(
    dashboard: dict[str, Any],
) -> None:
    alerts = (ROOT / "examples/observability/alerts.yml").read_text()
    wanted = asked_for(dashboard) | set(re.findall(NAME, alerts))
    with Server("health_app:app", "--admin", "127.0.0.1:0", "--no-access-log") as server:
        operators = Operators(server)

        def are_all_there() -> bool:
            shown.update(name.partition("{")[0] for name in operators.samples())
            return wanted <= shown

        shown: set[str] = set()
        # What holds a loop is shown only while it does.
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/hold?seconds=2&how=python"))
            operators.until(lambda: are_all_there() or "bridgehead_loop_blocked_by" in shown)
            assert client.read_response().body == b"held"
        operators.until(are_all_there)


def test_no_two_panels_are_in_one_place(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    places = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(places) == len(set(places))
    assert {x for x, _ in places} == set(range(24))
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    for panel in panels:
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
