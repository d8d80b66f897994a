"""Measures what a feature of ours adds to a hello: `python loadtests/variants.py` prints a Markdown table.

The access log, a second worker, `--admin`, the watch over slow steps (by what it costs less without), and the
limit that follows how long requests take. Not peers (`compare.py`), whose bursts and order these are.
Invariant: as there, one server runs at a time, each is measured in every round, and all are ended.
"""

import argparse
import os
import signal
import statistics
import sys
from contextlib import ExitStack

import ending
from bursts import ask, in_a_line
from lineup import note_death
from machine import check_tools, noise, tell_machine
from results import Burst, Measured
from servers import CONTROL, VARIANTS, Server, started
from workloads import WORKLOADS, Workload

PLAIN = "bridgehead"


def main() -> None:
    """Measure each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="bursts for each server [9]")
    parser.add_argument("--seconds", type=int, default=1, help="length of a burst [1]")
    options = parser.parse_args()
    check_tools("wrk")
    cores = sorted(os.sched_getaffinity(0))
    print(tell_machine([PLAIN], cores))
    print(f"{options.rounds} bursts of {options.seconds} s each after one that warms up.")
    print(f"Noise before: {noise(cores[0])}.\n", flush=True)
    print(measured(cores, options.rounds, options.seconds))
    print(f"Noise after: {noise(cores[0])}; load average {os.getloadavg()[0]:.1f}.")


def measured(cores: list[int], rounds: int, seconds: int = 1) -> str:
    """The table."""
    hello = next(each for each in WORKLOADS if each.name == "hello, 64")
    found = {name: Measured() for name in (PLAIN, CONTROL, *VARIANTS)}
    with ExitStack() as stack:
        servers = []
        for name, each in found.items():
            try:
                servers.append(stack.enter_context(started(name, hello.app, cores[0])))
            except RuntimeError as problem:
                each.wrong = in_a_line(problem)
        for number in range(rounds + 1):
            for server in servers if number % 2 else servers[::-1]:
                print(f"{server.name} …", file=sys.stderr, flush=True)
                one = _burst(server, hello, cores[-1], seconds, found[server.name])
                found[server.name].bursts += [one] if number and one else []
    return table(found)


def _burst(server: Server, workload: Workload, core: int, seconds: int, found: Measured) -> Burst | None:
    if found.wrong:
        return None
    server.signal(signal.SIGCONT)
    try:
        one = ask(server, workload, core, seconds, found)
        note_death(server, found)
        return None if found.wrong else one
    finally:
        server.signal(signal.SIGSTOP)


def table(found: dict[str, Measured]) -> str:
    """What each costs, and how much more that is than the plain server in the same round."""
    lines = [
        "### What a feature adds to a hello, 64 connections",
        "",
        "| server | CPU µs per answer | least to most | beside the plain one, µs | least to most | / plain |",
        "|---|---|---|---|---|---|",
    ]
    plain = [burst.cpu for burst in found[PLAIN].bursts]
    for name, each in found.items():
        if each.wrong or not plain:
            lines.append(f"| {name} | refused: {each.wrong or 'nothing to compare it with'} | | | | |")
            continue
        costs = [burst.cpu for burst in each.bursts]
        more = [cost - base for cost, base in zip(costs, plain, strict=False)]
        ratio = statistics.median(cost / base for cost, base in zip(costs, plain, strict=False))
        cells = [f"{each.cpu:.1f}", f"{min(costs):.1f} to {max(costs):.1f}"]
        cells += [f"{statistics.median(more):+.1f}", f"{min(more):+.1f} to {max(more):+.1f}", f"{ratio:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    ending.run(main)
