"""Measures the load generator beside wrk: `python loadtests/generator.py` prints what a request costs each.

Not a test of a server: both ask the same hello of hyper alone (`crates/bridgehead-load/examples/bare`).
Invariant: the server keeps core 0, the client core 1, one client runs at a time, and both run in every round.

Needs Linux, `wrk`, `taskset`, and an optimised build: install the wheel of `make wheel`, and build the server
by `cargo build --profile bench -p bridgehead-load --example bare`.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BARE = Path(__file__).resolve().parent.parent / "target" / "release" / "examples" / "bare"
# The time of the run alone: a start of Python is no request.
OURS = """
import json, resource, sys
from bridgehead.load import load
before = resource.getrusage(resource.RUSAGE_SELF)
report = load(sys.argv[1], connections=int(sys.argv[2]), duration=float(sys.argv[3]))
after = resource.getrusage(resource.RUSAGE_SELF)
assert not report.errors, report.first_errors
print(json.dumps([report.requests, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Microseconds of a core for each request."""

    user: float
    system: float

    @property
    def whole(self) -> float:
        """Both."""
        return self.user + self.system


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    if not BARE.exists():
        sys.exit(f"{BARE} is not there: cargo build --profile bench -p bridgehead-load --example bare")
    print(
        f"load average {os.getloadavg()[0]:.1f}; µs for each request: median (least to most), user + system"
    )
    print("\n| connections | wrk | ours | ours / wrk |\n|---|---|---|---|")
    with subprocess.Popen(["taskset", "-c", "0", BARE, "0"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://{server.stdout.readline().strip()}/"
        for connections in options.connections:
            print(row(url, connections, options.seconds, options.rounds), flush=True)
        server.kill()


def row(url: str, connections: int, seconds: int, rounds: int) -> str:
    """One line of the table."""
    costs: dict[str, list[Cost]] = {"wrk": [], "ours": []}
    for number in range(rounds):
        clients = [("wrk", wrk), ("ours", ours)]
        # Whoever is first meets another machine than who comes after.
        for name, client in clients if number % 2 else clients[::-1]:
            costs[name].append(client(url, connections, seconds))
    ratios = [ours.whole / theirs.whole for ours, theirs in zip(costs["ours"], costs["wrk"], strict=True)]
    cells = [shown(costs["wrk"]), shown(costs["ours"]), spread(ratios)]
    return f"| {connections} | {' | '.join(cells)} |"


def wrk(url: str, connections: int, seconds: int) -> Cost:
    """A burst of wrk."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = on_core_1("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(r"(\d+) requests in", said)
    assert found is not None, said
    return cost(int(found[1]), after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


def ours(url: str, connections: int, seconds: int) -> Cost:
    """A burst of ours."""
    return cost(*json.loads(on_core_1(sys.executable, "-c", OURS, url, str(connections), str(seconds))))


def on_core_1(*command: str) -> str:
    """What it printed."""
    return subprocess.run(["taskset", "-c", "1", *command], check=True, capture_output=True, text=True).stdout


def cost(requests: int, user: float, system: float) -> Cost:
    """For each request."""
    return Cost(user=user / requests * 1e6, system=system / requests * 1e6)


def shown(costs: list[Cost]) -> str:
    """All rounds."""
    user, system = (
        statistics.median(values) for values in zip(*((c.user, c.system) for c in costs), strict=True)
    )
    return f"{spread([each.whole for each in costs])}, {user:.1f} + {system:.1f}"


def spread(values: list[float]) -> str:
    """Median, least and most."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
