"""Measures what connections cost by the thousand: `python loadtests/scale.py` prints a Markdown table.

Idle ones first, then all of them busy at once. Not what the figures mean: docs/scale.md has that.
Invariant: as in compare.py one server runs at a time; every wait has its end, and a refusal ends the row.
"""

import argparse
import os
import resource
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bursts import ask
from machine import check_tools, tell_machine
from results import Measured
from servers import COMMANDS, Server, available, started
from workloads import WORKLOADS

COUNTS = (1000, 10_000)
USUAL = ["bridgehead", "bridgehead unlimited", "uvicorn", "granian"]
ASK = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
SPARE = 200  # descriptors besides connections
SETTLES = 5.0  # seconds: Bridgehead gives the buffers of who is idle back after one, and memory a while later
AT_ONCE = 100  # connections that are made before their answers are read
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
            idle, busy = idle_cost(server, count), busy_cost(server, count, cores[-1], rounds)
    except (RuntimeError, OSError) as problem:
        return f"| {count:,} | {name} | {' '.join(str(problem).split())} | | | | | |"
    cells = [f"{count:,}", name, f"{idle.memory:.1f}", f"{idle.kernel:.1f}", f"{idle.cpu:,.0f}"]
    return f"| {' | '.join([*cells, *busy])} |"


def idle_cost(server: Server, count: int) -> Idle:
    """With so many that have asked once."""
    server.signal(signal.SIGCONT)
    time.sleep(SETTLES / 5)
    memory, kernel = server.memory(), kernel_memory()
    with ExitStack() as stack:
        clients: list[socket.socket] = []
        while len(clients) < count:
            few = [
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
                for _ in range(min(AT_ONCE, count - len(clients)))
            ]
            for client in few:
                client.sendall(ASK)
            for client in few:
                if not client.recv(4096).startswith(b"HTTP/1.1 200"):
                    raise RuntimeError("wrong answer")
            clients += few
        time.sleep(SETTLES)
        spent = server.cpu()
        time.sleep(1)
        spent = server.cpu() - spent
        return Idle(
            memory=(server.memory() - memory) * 1024 / count,
            kernel=(kernel_memory() - kernel) * 1024 / count,
            cpu=spent / 1000,
        )


def busy_cost(server: Server, count: int, core: int, rounds: int) -> list[str]:
    """With as many that ask all the time: memory for each, CPU for an answer, answers a second."""
    hello = next(each for each in WORKLOADS if each.name == "hello, 64")
    found = Measured()
    before, seconds = server.memory(), 2 + count // 1000  # connecting takes its time
    for _ in range(rounds):
        burst = ask(server, replace(hello, connections=count), core, seconds, found)
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
    main()
