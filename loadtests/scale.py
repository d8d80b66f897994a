"""Measures what connections cost by the thousand: `python loadtests/scale.py` prints a Markdown table.

Idle ones first, then all of them busy at once. Not what the figures mean: docs/scale.md has that.
Invariant: as in compare.py one server runs at a time; every wait has its end; and what is refused has no
figure, nor have idle connections of which some were closed meanwhile.
"""

import argparse
import os
import resource
import signal
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import ending
import idle
from bursts import ask, in_a_line
from machine import check_tools, tell_machine
from results import Measured
from servers import COMMANDS, Server, available, started
from workloads import WORKLOADS

# Above 4,096 that ask in one moment Bridgehead tells some of them 503, whatever its options.
COUNTS = (1000, 4000, 10_000)
# By default connections run short from four fifths of 10,000 on, and idle ones are closed after five seconds.
USUAL = ["bridgehead", "bridgehead unlimited", "uvicorn", "granian"]
SPARE = 200  # descriptors besides connections
SETTLES = 5.0  # seconds: Bridgehead gives the buffers of who is idle back after one, and memory a while later
PATIENCE = 30  # seconds for an answer: ten thousand that ask in one moment wait for each other
HEAD = [
    "| connections | server | idle: KiB each | kernel's, KiB | µs of a core in a second "
    "| busy: KiB each | CPU µs per answer | answers a second |",
    "|---|---|---|---|---|---|---|---|",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Connections that have asked once: KiB for each, and microseconds of a core in a second for all."""

    memory: float
    kernel: float
    cpu: float


def main() -> None:
    """Measure each server with each count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--servers", nargs="+", choices=[*COMMANDS], default=USUAL)
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS))
    parser.add_argument("--rounds", type=int, default=3, help="bursts for each [3]")
    options = parser.parse_args()
    check_tools("wrk")
    cores = sorted(os.sched_getaffinity(0))
    names = available(options.servers)
    print(tell_machine([name for name in names if " " not in name], cores))
    print("", *HEAD, sep="\n", flush=True)
    for count in options.counts:
        if count + SPARE > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
            print(f"| {count:,} | more than files may be open: `ulimit -n` | | | | | | |")
            continue
        for name in names:
            print(f"{count} connections: {name} …", file=sys.stderr, flush=True)
            print(row(name, count, cores, options.rounds), flush=True)


def row(name: str, count: int, cores: list[int], rounds: int) -> str:
    """One line of the table."""
    try:
        with started(name, "apps:hello", cores[0]) as server:
            cells = [*idle_cells(server, count), *busy_cost(server, count, cores[-1], rounds)]
    except (RuntimeError, OSError) as problem:
        cells = [in_a_line(problem), "", "", "", "", ""]
    return f"| {' | '.join([f'{count:,}', name, *cells])} |"


def idle_cells(server: Server, count: int) -> list[str]:
    """Their cost, or how many of them are no more."""
    found = idle_cost(server, count)
    if isinstance(found, str):
        return [found, "", ""]
    return [f"{found.memory:.1f}", f"{found.kernel:.1f}", f"{found.cpu:,.0f}"]


def idle_cost(server: Server, count: int) -> Idle | str:
    """With so many that have asked once; why there is no figure, if there is none."""
    server.signal(signal.SIGCONT)
    time.sleep(SETTLES / 5)
    memory, kernel = server.memory(), kernel_memory()
    with ExitStack() as stack:
        clients = idle.connected(server.port, count, stack)
        time.sleep(SETTLES)
        spent = server.cpu()
        time.sleep(1)
        spent = server.cpu() - spent
        cost = Idle(
            memory=(server.memory() - memory) * 1024 / count,
            kernel=(kernel_memory() - kernel) * 1024 / count,
            cpu=spent / 1000,
        )
        return idle.told(clients) or cost


def busy_cost(server: Server, count: int, core: int, rounds: int) -> list[str]:
    """With as many that ask all the time: memory for each, CPU for an answer, answers a second."""
    hello = next(each for each in WORKLOADS if each.name == "hello, 64")
    found = Measured()
    before, seconds = server.memory(), 2 + count // 1000  # connecting takes its time
    for _ in range(rounds):
        asked = replace(hello, connections=count, patience=PATIENCE)
        burst = ask(server, asked, core, seconds, found)
        if burst is None:
            return [f"refused: {found.wrong}", "", ""]
        found.bursts.append(burst)
    server.signal(signal.SIGSTOP)
    return [f"{(found.memory - before) * 1024 / count:.1f}", f"{found.cpu:.1f}", f"{found.rate:,.0f}"]


def kernel_memory() -> float:
    """MiB of the kernel's in slabs, where sockets, files and their entries are, the client's too."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("Slab:"):
                return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    ending.run(main)
