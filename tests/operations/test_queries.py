"""Every query of examples/observability, and the autoscaler's, asked of Prometheus: `make observability`."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Server
from operators import Operators

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "observability"
ADAPTER = ROOT / "examples" / "deploy" / "kubernetes" / "metrics.yaml"
PROMETHEUS = shutil.which("prometheus", path=f"{ROOT}/target/prometheus/usr/bin:/usr/bin:/usr/local/bin")
pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn has no such port"),
    pytest.mark.skipif(PROMETHEUS is None, reason="Prometheus is not there: make observability"),
]


def test_every_query_of_the_dashboard_finds_something_and_every_alert_is_in_order(tmp_path: Path) -> None:
    with Server("health_app:app", "--admin", "127.0.0.1:0", "--slow-step", "250ms") as server:
        operators = Operators(server)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(FOLDER / "alerts.yml")],
            "scrape_configs": [
                {"job_name": "serve", "static_configs": [{"targets": [f"127.0.0.1:{operators.port}"]}]}
            ],
        }
        (tmp_path / "prometheus.yml").write_text(json.dumps(settings))
        command = [
            *(str(PROMETHEUS), f"--config.file={tmp_path / 'prometheus.yml'}"),
            *(f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{port}"),
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as prometheus:
            try:
                judge(server, f"http://127.0.0.1:{port}/api/v1")
            finally:
                prometheus.terminate()


def judge(server: Server, api: str) -> None:
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    waiting = {each["expr"] for panel in dashboard["panels"] for each in panel["targets"]}
    assert len(waiting) > 40
    waiting.add(scaling_query())
    deadline = time.monotonic() + 50
    while waiting:
        assert time.monotonic() < deadline, waiting
        # Longer than from one scrape to the next: what is shown only while the loop is held is there once.
        held = 1.5 if any("bridgehead_loop_blocked_by" in each for each in waiting) else 0
        assert server.ask(f"/hold?seconds={held}").status == 200
        with server.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: b@d\r\n\r\n")
            client.read_response()
        waiting = {each for each in waiting if not finds_something(api, each)}
    groups = asked(f"{api}/rules")["groups"]
    healths = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert len(healths) == 7
    assert set(healths.values()) == {"ok"}, healths


def scaling_query() -> str:
    """What scales the pods of examples/deploy/kubernetes, as the adapter writes it out."""
    text = ADAPTER.read_text()
    query = " ".join(text.partition("metricsQuery: >-\n")[2].split())
    [series] = re.findall(r"seriesQuery: (\w+)", text)
    for name, value in {"Series": series, "LabelMatchers": 'job="serve"', "GroupBy": "instance"}.items():
        query = query.replace(f"<<.{name}>>", value)
    assert "<<" not in query
    return query.replace("[1m]", "[30s]")


def finds_something(api: str, query: str) -> bool:
    query = query.replace("$__rate_interval", "30s")
    return bool(asked(f"{api}/query?{urllib.parse.urlencode({'query': query})}").get("result"))


def asked(url: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
            return data
    except urllib.error.HTTPError as refused:
        if refused.code != 503:  # it has just begun
            raise
        return {}
    except OSError:
        return {}
