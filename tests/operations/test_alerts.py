"""Each alert of examples/observability: what has it raised, and what comes near and has not.

Prometheus' own `promtool test rules` judges: `make observability`.

Not the queries' names, which a running server shows (`test_queries.py`).

Invariant: an alert that has no row here fails the test.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "examples" / "observability" / "alerts.yml"
PROMTOOL = shutil.which("promtool", path=f"{ROOT}/target/prometheus/usr/bin:/usr/bin:/usr/local/bin")
ANSWERED = "http_server_request_duration_seconds_count"
TOOK = "http_server_request_duration_seconds_bucket"
OK = 'http_response_status_code="200"'


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a server shows minute by minute, in promtool's words, and whether it is told of then."""

    of: str
    why: str
    shows: dict[str, str]
    minutes: int
    raised: bool = True
    labels: dict[str, str] = field(default_factory=dict)


def latency(quick: int, slow: int, said: str) -> dict[str, str]:
    """So many requests a minute that take less than a second, and so many of another kind that take two."""
    kinds = [(OK, quick, quick), (said, 0, slow)]
    return {
        f'{TOOK}{{{kind},le="{bound}"}}': f"0+{count}x30"
        for kind, least, most in kinds
        for bound, count in [("1.0", least), ("2.5", most), ("+Inf", most)]
    }


def failures(share: int, said: str) -> dict[str, str]:
    """So many requests of a hundred."""
    return {f"{ANSWERED}{{{OK}}}": f"0+{100 - share}x30", f"{ANSWERED}{{{said}}}": f"0+{share}x30"}


ROWS = [
    Row(
        of="BridgeheadErrors",
        why="one in ten fails",
        shows=failures(10, 'http_response_status_code="500",error_type="application_failed"'),
        minutes=7,
    ),
    Row(
        of="BridgeheadErrors",
        why="one in ten fails of which no more than the class is known",
        shows=failures(10, 'http_request_method="_OTHER",http_response_status_code="5xx",error_type="5xx"'),
        minutes=7,
    ),
    Row(
        of="BridgeheadErrors",
        why="it has been so for less than five minutes",
        shows=failures(10, 'http_response_status_code="500",error_type="500"'),
        minutes=5,
        raised=False,
    ),
    Row(
        of="BridgeheadErrors",
        why="one in thirty fails",
        shows=failures(3, 'http_response_status_code="500",error_type="500"'),
        minutes=20,
        raised=False,
    ),
    Row(
        of="BridgeheadErrors",
        why="clients ask for what is not there",
        shows=failures(50, 'http_response_status_code="404"'),
        minutes=20,
        raised=False,
    ),
    Row(
        of="BridgeheadSlow", why="two of a hundred are slow", shows=latency(98, 2, OK + ',a="b"'), minutes=12
    ),
    Row(
        of="BridgeheadSlow",
        why="the application says by itself, and late, that it is busy",
        shows=latency(90, 10, 'http_response_status_code="503",error_type="503"'),
        minutes=12,
    ),
    Row(
        of="BridgeheadSlow",
        why="who was slow was turned away",
        shows=latency(90, 10, 'http_response_status_code="503",error_type="queued_too_long"'),
        minutes=20,
        raised=False,
    ),
    Row(
        of="BridgeheadSlow",
        why="one of two hundred is slow",
        shows=latency(199, 1, OK + ',a="b"'),
        minutes=20,
        raised=False,
    ),
    *(
        Row(
            of="BridgeheadSheds",
            why=reason,
            shows={f'bridgehead_refusals_total{{reason="{reason}"}}': "0+1x30"},
            minutes=7,
        )
        for reason in ("queue_full", "queued_too_long", "overloaded", "files_full", "files_too_long")
    ),
    Row(
        of="BridgeheadSheds",
        why="clients ask in a wrong way",
        shows={'bridgehead_refusals_total{reason="bad_host"}': "0+9x30"},
        minutes=20,
        raised=False,
    ),
    Row(
        of="BridgeheadLoopBlocked",
        why="six seconds so far",
        shows={'bridgehead_loop_blocked_seconds{instance="shop:9000", worker="3"}': "0 6"},
        minutes=1,
        labels={"instance": "shop:9000", "worker": "3"},
    ),
    Row(
        of="BridgeheadLoopBlocked",
        why="it was blocked, and is not any more",
        shows={'bridgehead_loop_blocked_seconds{worker="3"}': "0 6 0"},
        minutes=2,
        raised=False,
    ),
    Row(
        of="BridgeheadSpansLost",
        why="the collector is away",
        shows={'bridgehead_spans_lost_total{reason="unreachable"}': "0+5x30"},
        minutes=7,
    ),
    Row(
        of="BridgeheadSpansLost",
        why="none is lost any more",
        shows={'bridgehead_spans_lost_total{reason="unreachable"}': "0 5 5+0x30"},
        minutes=20,
        raised=False,
    ),
    *(
        Row(
            of="BridgeheadWorkersDie",
            why=reason,
            shows={f'bridgehead_worker_ends_total{{reason="{reason}"}}': "0 1 2 3 4 4+0x30"},
            minutes=6,
        )
        for reason in ("killed", "exited", "overdue")
    ),
    Row(
        of="BridgeheadWorkersDie",
        why="they were told to end",
        shows={'bridgehead_worker_ends_total{reason="stopped"}': "0+4x30"},
        minutes=20,
        raised=False,
    ),
    Row(
        of="BridgeheadWorkersDie",
        why="one has died",
        shows={'bridgehead_worker_ends_total{reason="killed"}': "0 0 1 1+0x30"},
        minutes=10,
        raised=False,
    ),
    Row(
        of="BridgeheadNotReady",
        why="no worker is",
        shows={'bridgehead_ready{instance="shop:9000"}': "1 0 0 0"},
        minutes=3,
        labels={"instance": "shop:9000"},
    ),
    Row(
        of="BridgeheadNotReady",
        why="it has only begun",
        shows={'bridgehead_ready{instance="shop:9000"}': "1 0 1 0"},
        minutes=3,
        raised=False,
    ),
]


def summaries() -> dict[str, str]:
    """What each alert says, by its name."""
    found = re.findall(r"- alert: (\w+)\n.*?summary: ([^\n]+)", ALERTS.read_text(), re.DOTALL)
    return dict(found)


def test_each_alert_has_a_row_that_raises_it_and_one_that_does_not() -> None:
    names = set(summaries())
    assert len(names) == ALERTS.read_text().count("- alert: ")
    assert {row.of for row in ROWS if row.raised} == names
    assert {row.of for row in ROWS if not row.raised} == names


@pytest.mark.skipif(PROMTOOL is None, reason="Prometheus is not there: make observability")
@pytest.mark.parametrize("row", ROWS, ids=[f"{row.of}: {row.why}" for row in ROWS])
def test_an_alert_is_raised_by_what_it_is_there_for_and_by_nothing_else(row: Row, tmp_path: Path) -> None:
    said = summaries()[row.of]
    for name, value in row.labels.items():
        said = said.replace(f"{{{{ $labels.{name} }}}}", value)
    raised = [{"exp_labels": row.labels, "exp_annotations": {"summary": said}}] if row.raised else []
    judged = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in row.shows.items()],
        "alert_rule_test": [{"eval_time": f"{row.minutes}m", "alertname": row.of, "exp_alerts": raised}],
    }
    asked = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [judged]}
    (tmp_path / "alerts_test.json").write_text(json.dumps(asked))
    command = [str(PROMTOOL), "test", "rules", str(tmp_path / "alerts_test.json")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
