"""A burst of load by wrk, h2load or our own client, and what it came to.

Not what it cost the server (`servers.py`).

Invariant: an answer that is not the one that is due is told as wrong, never counted as good.
"""

import http.client
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from workloads import Workload

FOLDER = Path(__file__).resolve().parent
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_SIZES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
# wrk shows three digits of what it has read; the rest is for requests that were cut at the end.
_READ = 0.97
_OURS = """
import json, sys
from bridgehead.load import load
url, connections, seconds = sys.argv[1:]
options = {"connections": int(connections), "duration": float(seconds), "expect_body": "hello"}
report = load(url, keep_alive=False, **options)
good = report.requests - report.errors
print(json.dumps([good, report.rps, report.p50, report.p99, report.errors_by_kind]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a burst came to, as its client tells it."""

    answers: int
    rate: float
    p50: float | None
    p99: float | None
    wrong: str = ""


def probe(port: int, path: str, workload: Workload) -> str:
    """What is wrong with one answer; nothing, if it is right."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        method = "POST" if workload.body else "GET"
        headers = {"Content-Type": workload.content_type} if workload.body else {}
        connection.request(method, path, body=workload.body or None, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as problem:
        return f"no answer: {problem!r}"
    finally:
        connection.close()
    if answer.status != 200:
        return f"status {answer.status}"
    # hyper alone echoes what FastAPI is sent.
    right = workload.due if path == workload.path else None
    return "" if right in (None, body) else f"{len(body)} bytes, not the {len(workload.due)} that are due"


def burst(port: int, path: str, workload: Workload, core: int, seconds: int) -> Load:
    """Load for so long."""
    url = f"http://127.0.0.1:{port}{path}"
    return {"wrk": _wrk, "h2load": _h2load, "ours": _ours}[workload.client](url, workload, core, seconds)


def _run(core: int, *command: str | Path) -> str:
    on_core = ["taskset", "--cpu-list", str(core), *command]
    done = subprocess.run(on_core, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _wrk(url: str, workload: Workload, core: int, seconds: int) -> Load:
    command = ["wrk", "--latency", "-t1", f"-c{workload.connections}", f"-d{seconds}s"]
    script = ["-s", FOLDER / "post.lua"] if workload.body else []
    given = ["--", workload.content_type, workload.body.decode()] if workload.body else []
    said = _run(core, *command, *script, url, *given)
    count, read = re.search(r"(\d+) requests in [\d.]+\w+, ([\d.]+)(\w+) read", said), 0.0
    rate = re.search(r"Requests/sec:\s*([\d.]+)", said)
    assert count is not None, said
    assert rate is not None, said
    read = float(count[2]) * _SIZES[count[3]]
    wrong = "; ".join(re.findall(r"(?:Non-2xx|Socket errors).*", said))
    if url.endswith(workload.path) and read < _READ * int(count[1]) * len(workload.due):
        wrong += f"; {read:.0f} bytes for {count[1]} answers: some were cut"
    return Load(
        answers=int(count[1]),
        rate=float(rate[1]),
        p50=_percentile(said, "50"),
        p99=_percentile(said, "99"),
        wrong=wrong.strip("; "),
    )


def _percentile(said: str, which: str) -> float | None:
    found = re.search(rf"^\s+{which}%\s+([\d.]+)(us|ms|s|m)\s*$", said, re.M)
    return float(found[1]) * _UNITS[found[2]] if found else None


def _h2load(url: str, workload: Workload, core: int, seconds: int) -> Load:
    command = ["h2load", "--h1", f"--duration={seconds}", f"-c{workload.connections}", "-m16", "-t1", url]
    said = _run(core, *command)
    rate = re.search(r"finished in [^,]+, ([\d.]+) req/s", said)
    counts = re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored", said)
    statuses = re.search(r"status codes: (\d+) 2xx", said)
    assert rate is not None, said
    assert counts is not None, said
    assert statuses is not None, said
    failed = int(counts[1]) - int(counts[2])
    wrong = f"{failed} failed" if failed else ""
    return Load(answers=int(counts[2]), rate=float(rate[1]), p50=None, p99=None, wrong=wrong)


def _ours(url: str, workload: Workload, core: int, seconds: int) -> Load:
    said = _run(core, sys.executable, "-c", _OURS, url, str(workload.connections), str(seconds))
    answers, rate, p50, p99, errors = json.loads(said)
    wrong = ", ".join(f"{kind}: {number}" for kind, number in errors.items())
    return Load(answers=answers, rate=rate, p50=p50, p99=p99, wrong=wrong)
