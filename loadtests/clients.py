"""A burst of load by wrk, h2load or our own client, and what it came to.

Not what it cost the server (`servers.py`).

Invariant: an answer that is not the one that is due is told as wrong, never counted as good.
"""

import http.client
import json
import re
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workloads import H2, H2C, HTTP, HTTPS, SCHEMES, WS, Workload

from bridgehead.load import load

FOLDER = Path(__file__).resolve().parent
# Answers by HTTP/2 that are compared before a burst.
CHECKED = 4096
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_OURS = """
import json, sys
from bridgehead.load import load
url, connections, seconds, due = sys.argv[1:]
options = {"connections": int(connections), "duration": float(seconds)}
if url.startswith("ws"):
    options["body"] = due  # what is sent is what has to come back
else:
    options |= {"keep_alive": False, "expect_status": [200], "expect_body": due}
report = load(url, **options)
good = report.requests - report.errors
print(json.dumps([good, report.rps, report.p50, report.p99, report.errors_by_kind, report.bytes]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a burst came to, as its client tells it."""

    answers: int
    rate: float
    p50: float | None
    p99: float | None
    wrong: str = ""


def probe(port: int, path: str, workload: Workload, core: int) -> str:
    """What is wrong with one answer; nothing, if it is right.

    h2load keeps no bodies, so many are compared here where the burst is h2load's, with as many at once.
    """
    if workload.client == "h2load" and workload.speaks == HTTP:
        try:
            return _wrk(url_of(port, path, workload), workload, core, 1, workload.due_at(path)).wrong
        except RuntimeError as problem:
            return " ".join(str(problem).split())
    if workload.speaks in (H2, H2C, WS):
        return _probe_by_ours(port, path, workload)
    if workload.speaks == HTTPS:
        anybody = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=anybody)
    else:
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
    due = workload.due_at(path)
    return "" if body == due else f"{len(body)} bytes, not the {len(due)} that are due"


def _probe_by_ours(port: int, path: str, workload: Workload) -> str:
    """What is wrong with one message, or with one of many answers by HTTP/2."""
    due = workload.due_at(path).decode()
    asked: dict[str, Any] = {"body": due, "requests": 1, "connections": 1}
    if workload.speaks != WS:
        many = {"requests": CHECKED, "connections": workload.connections, "streams": workload.at_once}
        asked = {"http": "2", "expect_status": [200], "expect_body": due, **many}
    report = load(url_of(port, path, workload), **asked)
    if report.errors:
        return f"{report.errors} of {report.requests}: {', '.join(report.first_errors.values())}"
    whole = report.requests * len(due)
    return "" if report.bytes == whole else f"{report.bytes} bytes, not the {whole} that are due"


def url_of(port: int, path: str, workload: Workload) -> str:
    """Where it is asked."""
    return f"{SCHEMES[workload.speaks]}://127.0.0.1:{port}{path}"


def burst(port: int, path: str, workload: Workload, core: int, seconds: int) -> Load:
    """Load for so long."""
    url = url_of(port, path, workload)
    client = {"wrk": _wrk, "h2load": _h2load, "ours": _ours}[workload.client]
    return client(url, workload, core, seconds, workload.due_at(path))


def _run(core: int, *command: str | Path) -> str:
    on_core = ["taskset", "--cpu-list", str(core), *command]
    done = subprocess.run(on_core, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _wrk(url: str, workload: Workload, core: int, seconds: int, due: bytes) -> Load:
    times = [f"-d{seconds}s", f"--timeout={workload.patience}s"]
    command = ["wrk", "--latency", "-t1", f"-c{workload.connections}", *times]
    with TemporaryDirectory() as folder:
        files = [Path(folder) / "due", Path(folder) / "body"]
        for file, content in zip(files, (due, workload.body), strict=True):
            file.write_bytes(content)
        given = [
            files[0],
            str(workload.at_once),
            *([workload.content_type, files[1]] if workload.body else []),
        ]
        said = _run(core, *command, "-s", FOLDER / "exact.lua", url, "--", *given)
    count = re.search(r"(\d+) requests in", said)
    rate = re.search(r"Requests/sec:\s*([\d.]+)", said)
    assert count is not None, said
    assert rate is not None, said
    return Load(
        answers=int(count[1]),
        rate=float(rate[1]),
        p50=_percentile(said, "50"),
        p99=_percentile(said, "99"),
        wrong="; ".join(re.findall(r"(?:Wrong answers|Socket errors).*", said)),
    )


def _percentile(said: str, which: str) -> float | None:
    found = re.search(rf"^\s+{which}%\s+([\d.]+)(us|ms|s|m)\s*$", said, re.M)
    return float(found[1]) * _UNITS[found[2]] if found else None


def _h2load(url: str, workload: Workload, core: int, seconds: int, due: bytes) -> Load:
    command = ["h2load", f"--duration={seconds}", f"-c{workload.connections}", f"-m{workload.at_once}", "-t1"]
    version = [] if workload.speaks in (H2, H2C) else ["--h1"]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        said = _run(core, *command, *version, f"--log-file={log}", url)
        # When it began, its status, and how long it took.
        logged = [line.split("\t")[1:3] for line in log.read_text().splitlines()]
    taken = sorted(int(time) / 1e6 for _, time in logged)
    rate = re.search(r"finished in [^,]+, ([\d.]+) req/s", said)
    counts = re.search(r"(\d+) done, (\d+) succeeded", said)
    assert rate is not None, said
    assert counts is not None, said
    wrong = wrong_of_h2load(said, workload, due)
    if others := {status for status, _ in logged} - {"200"}:
        wrong = wrong or f"statuses {', '.join(sorted(others))}"
    p50, p99 = (taken[int(len(taken) * part)] if taken else None for part in (0.5, 0.99))
    return Load(answers=int(counts[2]), rate=float(rate[1]), p50=p50, p99=p99, wrong=wrong)


def wrong_of_h2load(said: str, workload: Workload, due: bytes) -> str:
    """It compares nothing itself (`probe` does), but counts statuses of each hundred and bytes of bodies."""
    counts = re.search(r"(\d+) done, (\d+) succeeded", said)
    statuses = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", said)
    data = re.search(r"\((\d+)\) data", said)
    assert counts is not None, said
    assert statuses is not None, said
    assert data is not None, said
    spoken = re.search(r"^Application protocol: (\S+)", said, re.M)
    if workload.speaks in (H2, H2C) and spoken and spoken[1] not in (H2, H2C):
        return f"{spoken[1]} instead of HTTP/2"
    done, good = int(counts[1]), int(counts[2])
    if done > good:
        return f"{done - good} failed"
    # Of what was still on its way at the end, some may have come.
    rest = workload.connections * workload.at_once
    if not good <= int(statuses[1]) <= good + rest or any(map(int, statuses.groups()[1:])):
        return statuses[0]
    if not good * len(due) <= int(data[1]) <= (good + rest) * len(due):
        return f"{data[1]} bytes for {good} answers of {len(due)}"
    return ""


def _ours(url: str, workload: Workload, core: int, seconds: int, due: bytes) -> Load:
    words = [url, str(workload.connections), str(seconds), due.decode()]
    answers, rate, p50, p99, errors, size = json.loads(_run(core, sys.executable, "-c", _OURS, *words))
    wrong = ", ".join(f"{kind}: {number}" for kind, number in errors.items())
    # It looks for a text, and a longer body has that in it, too.
    if not wrong and size != answers * len(due):
        wrong = f"{size} bytes for {answers} answers of {len(due)}"
    return Load(answers=answers, rate=rate, p50=p50, p99=p99, wrong=wrong)
