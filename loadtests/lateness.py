"""Measures how late timers are in a busy worker: `python loadtests/lateness.py` prints a Markdown table.

A task in the worker sleeps for 10 ms, again and again, and notes by how much it woke too late, while wrk
keeps the worker busy. Not a verdict: README.md beside this file says what the figures show and what not.
Invariant: only one server runs at a time, each is measured in every round, and all are ended.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import time
import urllib.request
from contextlib import ExitStack

import ending
from machine import check_tools, tell_machine
from servers import RUNTIMES, Server, available, started

CONNECTIONS = (64, 256)
PEERS = ["uvicorn"]
SETTLES = 0.1  # seconds: by then the sleep that the stop has made late is noted, and forgotten


def main() -> None:
    """Measure each runtime on each loop."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="bursts for each server [9]")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a burst [2]")
    options = parser.parse_args()
    check_tools("wrk")
    cores = sorted(os.sched_getaffinity(0))
    names = available([*RUNTIMES, *PEERS])
    print(tell_machine(["bridgehead", *available(PEERS)], cores))
    print(f"{options.rounds} bursts of {options.seconds} s each.\n")
    for connections in CONNECTIONS:
        with ExitStack() as stack:
            servers = [stack.enter_context(started(name, "apps:ticks", cores[0])) for name in names]
            found: dict[str, list[float]] = {server.name: [] for server in servers}
            for number in range(options.rounds + 1):
                for server in servers:
                    late = burst(server, cores[-1], connections, options.seconds)
                    # The first of each warms up.
                    found[server.name] += [late] if number else []
            print(table(found, f"{connections} busy connections"), flush=True)


def burst(server: Server, core: int, connections: int, seconds: float) -> float:
    """The lateness that one wake in a hundred exceeds, in milliseconds."""
    url = f"http://127.0.0.1:{server.port}/"
    server.signal(signal.SIGCONT)
    time.sleep(SETTLES)
    ask(f"{url}late")
    command = ["taskset", "--cpu-list", str(core), "wrk", "-t1", f"-c{connections}", "-d1h", url]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
        try:
            time.sleep(seconds)
            # Asked for while it is busy: what comes afterwards is another time.
            late = sorted(ask(f"{url}late"))
        finally:
            load.kill()
    server.signal(signal.SIGSTOP)
    return late[int(len(late) * 0.99)] * 1000


def ask(url: str) -> list[float]:
    """What has been noted, which is then forgotten."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        noted: list[float] = json.load(answer)
    return noted


def table(found: dict[str, list[float]], title: str) -> str:
    """Medians over the bursts, as Markdown."""
    lines = [f"**{title}**", "", "| server | p99 of lateness, ms | least to most |", "|---|---|---|"]
    for name, late in found.items():
        spread = f"{min(late):.1f} to {max(late):.1f}"
        lines.append(f"| {name} | {statistics.median(late):.1f} | {spread} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    ending.run(main)
