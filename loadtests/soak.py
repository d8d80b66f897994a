"""Hours of load by HTTP/1, HTTP/2 and WebSocket, and clients that misbehave: what has to stay as it is, does.

Not a benchmark: the load is moderate, and figures are compared with those of the same run only. Not the
clients that break off what they began by other means than HTTP/1: `departures.py` has those.

Invariant: exit code 0 only if none of memory, descriptors, tasks and p99 surely grew, nothing was answered
wrongly, and the server ended well. What a run is too short to tell, it says.
"""

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ending
from departures import drop_a_websocket, leave_a_stream
from trend import trend

from bridgehead.load import Report, load
from bridgehead.testing import (
    ServerProcess,
    half_closing_client,
    never_reading_client,
    resetting_client,
    slow_client,
)

FOLDER = Path(__file__).resolve().parent
SCENARIOS = FOLDER / "scenarios"
# The part of a run in which caches fill and allocators settle.
SETTLING = 0.2
# What memory may grow by in an hour.
MEMORY_MIB = 1.0
# What others may grow by in a whole run: less than one of what is counted; p99 as a busy machine has it.
IN_A_RUN = {"descriptors": 0.5, "tasks": 0.5, "p99": 0.005}
# What may be more in the last third than in the first, whether it grew from look to look or at once.
DESCRIPTORS, TASKS = 2, 1
P99_FACTOR, P99_SECONDS = 1.5, 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of clients, which are there all the time."""

    share: float  # of the rate; none for who has no rate but thinks between requests
    options: dict[str, Any]
    scheme: str = "http"
    path: str = "/"
    connections: int = 20


KINDS = {
    "HTTP/1": Kind(share=0.4, options={"scenarios": str(SCENARIOS / "shop.toml")}),
    "HTTP/2": Kind(
        share=0.3,
        options={"scenarios": str(SCENARIOS / "shop.toml"), "http": "2", "streams": 4},
        connections=5,
    ),
    "WebSockets": Kind(
        share=0.28, scheme="ws", path="/talk", options={"body": "message {n}", "expect_body": "message"}
    ),
    "uploads": Kind(share=0.02, options={"scenarios": str(SCENARIOS / "uploads.toml")}),
    "waiting": Kind(share=0, options={"scenarios": str(SCENARIOS / "waiting.toml")}, connections=10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The server after a slice of load."""

    at: float
    memory: float  # MiB
    descriptors: int
    tasks: int
    p99: float  # of HTTP/1's
    requests: int
    errors: int
    answers: dict[str, int] = field(default_factory=dict)  # of each kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a run has shown."""

    broken: list[str]
    # What may be flat and may not: too few looks, or looks that differ too much.
    untold: list[str]


def main() -> None:
    """Run, look, judge."""
    options = read_options()
    seconds = (options.minutes + 60 * options.hours) * 60
    samples: list[Sample] = []
    print("| minute | MiB | descriptors | tasks | p99 | requests | errors |\n|---|---|---|---|---|---|---|")
    with ServerProcess(
        "shop:app", cwd=FOLDER, **dict(each.split("=", 1) for each in options.option)
    ) as server:
        began = time.monotonic()
        while (at := time.monotonic() - began) < seconds:
            samples.append(one_slice(server, at, options))
            print(row(samples[-1]), flush=True)
    verdict = judge(samples)
    answers = {name: sum(each.answers[name] for each in samples) for name in KINDS} if samples else {}
    print("\n" + ", ".join(f"{name}: {count:,}" for name, count in answers.items()))
    lines = verdict.broken + [f"cannot be told from so short a run: {each}" for each in verdict.untold]
    print("\n" + ("\n".join(lines) or "flat: memory, descriptors, tasks and p99"))
    sys.exit(bool(verdict.broken))


def read_options() -> argparse.Namespace:
    """How long, and what the server is told."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="[10]")
    parser.add_argument("--hours", type=float, default=0.0, help="on top of the minutes [0]")
    parser.add_argument("--slice", type=float, default=10.0, help="seconds between two looks [10]")
    parser.add_argument("--rate", type=float, default=500.0, help="requests a second [500]")
    parser.add_argument("option", nargs="*", help="of the server: runtime=fused loop=uvloop")
    return parser.parse_args()


def one_slice(server: ServerProcess, at: float, options: argparse.Namespace) -> Sample:
    """All kinds at once, beside a few who misbehave; then a look."""
    with ExitStack() as held, ThreadPoolExecutor(len(KINDS)) as threads:
        misbehave(server, held)
        runs = {name: threads.submit(put_on, server, kind, options) for name, kind in KINDS.items()}
        reports = {name: run.result() for name, run in runs.items()}
    tasks = settled(server)
    return Sample(
        at=at,
        memory=memory(server.pid),
        descriptors=len(list(Path(f"/proc/{server.pid}/fd").iterdir())),
        tasks=tasks,
        p99=reports["HTTP/1"].p99,
        requests=sum(each.requests for each in reports.values()),
        errors=sum(each.errors for each in reports.values()),
        answers={name: each.requests - each.errors for name, each in reports.items()},
    )


def put_on(server: ServerProcess, kind: Kind, options: argparse.Namespace) -> Report:
    """One slice of these clients."""
    url = server.url.replace("http", kind.scheme, 1) + kind.path
    rate = options.rate * kind.share or None
    return load(url, rate=rate, connections=kind.connections, duration=options.slice, **kind.options)


def misbehave(server: ServerProcess, held: ExitStack) -> None:
    """Each kind, a few times."""
    for _ in range(3):
        held.enter_context(slow_client(server, "/items", pause=0.05))
        held.enter_context(never_reading_client(server, "/feed"))
        held.enter_context(half_closing_client(server, "/slow?for=1"))
        resetting_client(server, "/slow?for=5").reset()
        resetting_client(server, "/upload", method="PUT", body=b"x" * 1000, after=300).reset()
        leave_a_stream(server, "/slow?for=5")
        drop_a_websocket(server, "/talk")


def settled(server: ServerProcess) -> int:
    """The tasks, once those of the slice had time to end: the least of some looks."""
    return min(look(server) for _ in range(5))


def look(server: ServerProcess) -> int:
    """How many tasks there are, this request's among them."""
    time.sleep(0.1)
    return int(server.client.get("/tasks").text)


def memory(process: int) -> float:
    """MiB resident."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def row(sample: Sample) -> str:
    """A line of the table."""
    parts = [f"{sample.at / 60:.1f}", f"{sample.memory:.1f}", str(sample.descriptors), str(sample.tasks)]
    parts += [f"{sample.p99 * 1000:.1f} ms", f"{sample.requests:,}", str(sample.errors)]
    return f"| {' | '.join(parts)} |"


def settled_part(samples: list[Sample]) -> list[Sample]:
    """What came after warm-up."""
    return samples[int(len(samples) * SETTLING) :]


def judge(samples: list[Sample]) -> Verdict:
    """What surely grew, and what may have: by its slope, and by the first third beside the last."""
    rest = settled_part(samples)
    third = len(rest) // 3
    if not third:
        return Verdict(broken=["too short: no third of it has a look"], untold=[])
    broken, untold = [], []
    hours = (rest[-1].at - rest[0].at) / 3600
    bounds = {"memory": MEMORY_MIB} | {name: most / hours for name, most in IN_A_RUN.items()}
    for name, bound in bounds.items():
        grown = trend([(each.at, getattr(each, name)) for each in rest])
        said = f"{name} grew: {grown.likely:+.3g} an hour, {grown.least:+.3g} to {grown.most:+.3g}"
        jump = jumped(name, rest[:third], rest[-third:])
        if grown.least > bound:
            broken.append(said)
        elif jump:
            broken.append(jump)
        elif grown.most > bound:
            untold.append(f"{said}, where {bound:.3g} may be")
    wrong = sum(each.errors for each in samples)
    return Verdict(broken=[*broken, f"{wrong} errors"] if wrong else broken, untold=untold)


def jumped(name: str, first: list[Sample], last: list[Sample]) -> str:
    """What is more than it was by too much, however it came to that."""
    bounds = {
        "descriptors": lambda before: before + DESCRIPTORS,
        "tasks": lambda before: before + TASKS,
        "p99": lambda before: before * P99_FACTOR + P99_SECONDS,
    }
    before, after = (statistics.median(getattr(each, name) for each in part) for part in (first, last))
    if name not in bounds or after <= bounds[name](before):
        return ""
    return f"{name} grew: {before:.4g}, then {after:.4g}"


if __name__ == "__main__":
    ending.run(main)
