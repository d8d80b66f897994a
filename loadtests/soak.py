"""Hours of load, with clients that misbehave: what has to stay as it is, does. `python loadtests/soak.py`.

Not a benchmark: the load is moderate, and figures are compared with those of the same run only.

Invariant: exit code 0 only if memory, descriptors, tasks and p99 are at the end what they were at the
beginning, nothing was answered wrongly, and the server ended well.
"""

import argparse
import statistics
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from bridgehead.load import load
from bridgehead.testing import (
    ServerProcess,
    half_closing_client,
    never_reading_client,
    resetting_client,
    slow_client,
)

FOLDER = Path(__file__).resolve().parent
SCENARIOS = sorted((FOLDER / "scenarios").glob("*.toml"))
# The part of a run in which caches fill and allocators settle.
SETTLING = 0.2
# What may be more at the end than at the beginning, for an allocator's sake or a busy machine's.
MEMORY_PART, MEMORY_MIB = 0.05, 3.0
DESCRIPTORS, TASKS = 2, 1
P99_FACTOR, P99_SECONDS = 1.5, 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The server after a slice of load."""

    at: float
    memory: float  # MiB
    descriptors: int
    tasks: int
    p99: float
    requests: int
    errors: int


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
    broken = judge(samples)
    print("\n" + ("\n".join(broken) or "flat: memory, descriptors, tasks and p99"))
    sys.exit(bool(broken))


def read_options() -> argparse.Namespace:
    """How long, and what the server is told."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="[10]")
    parser.add_argument("--hours", type=float, default=0.0, help="on top of the minutes [0]")
    parser.add_argument("--slice", type=float, default=10.0, help="seconds between two looks [10]")
    parser.add_argument("--rate", type=float, default=300.0, help="requests a second [300]")
    parser.add_argument("option", nargs="*", help="of the server: runtime=fused loop=uvloop")
    return parser.parse_args()


def one_slice(server: ServerProcess, at: float, options: argparse.Namespace) -> Sample:
    """Each scenario file in turn, beside a few who misbehave; then a look."""
    reports = []
    with ExitStack() as held:
        misbehave(server, held)
        for file in SCENARIOS:
            part = options.slice / len(SCENARIOS)
            # Who thinks between requests has no rate, and uploads of a megabyte have a lower one.
            pace = {"waiting": None, "uploads": options.rate / 10}.get(file.stem, options.rate)
            connections = 10 if pace is None else 50
            asked = {"rate": pace, "connections": connections, "duration": part}
            reports.append(load(server.url, scenarios=str(file), **asked))
    tasks = settled(server)
    return Sample(
        at=at,
        memory=memory(server.pid),
        descriptors=len(list(Path(f"/proc/{server.pid}/fd").iterdir())),
        tasks=tasks,
        p99=next(each.p99 for each, file in zip(reports, SCENARIOS, strict=True) if file.stem == "shop"),
        requests=sum(each.requests for each in reports),
        errors=sum(each.errors for each in reports),
    )


def misbehave(server: ServerProcess, held: ExitStack) -> None:
    """Each kind, a few times."""
    for _ in range(3):
        held.enter_context(slow_client(server, "/items", pause=0.05))
        held.enter_context(never_reading_client(server, "/feed"))
        held.enter_context(half_closing_client(server, "/slow?for=1"))
        resetting_client(server, "/slow?for=5").reset()
        resetting_client(server, "/upload", method="PUT", body=b"x" * 1000, after=300).reset()


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


def judge(samples: list[Sample]) -> list[str]:
    """What is not as it was: the first third after settling beside the last."""
    rest = samples[int(len(samples) * SETTLING) :]
    third = len(rest) // 3
    if not third:
        return ["too short: no third of it has a look"]
    first, last = rest[:third], rest[-third:]

    def both(name: str) -> tuple[float, float]:
        before, after = (statistics.median(getattr(each, name) for each in part) for part in (first, last))
        return before, after

    bounds = {
        "memory": lambda before: before * (1 + MEMORY_PART) + MEMORY_MIB,
        "descriptors": lambda before: before + DESCRIPTORS,
        "tasks": lambda before: before + TASKS,
        "p99": lambda before: before * P99_FACTOR + P99_SECONDS,
    }
    broken = [
        f"{name} grew: {before:.4g}, then {after:.4g}"
        for name, bound in bounds.items()
        for before, after in [both(name)]
        if after > bound(before)
    ]
    wrong = sum(each.errors for each in samples)
    return [*broken, f"{wrong} errors"] if wrong else broken


if __name__ == "__main__":
    main()
