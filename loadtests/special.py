"""What no burst shows: connections that are idle, how soon a server is up, how late its timers are.

Not the workloads (`workloads.py`).

Invariant: as there, one server runs at a time.
"""

import http.client
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import idle as connections
import lateness
import variants
from bursts import in_a_line
from lineup import watched
from results import OURS
from servers import FOLDER, START_SECONDS, Server, command_of, end, free_port, started

IDLE = 2000
# Seconds: at once, and once whoever gives something back has done so (Bridgehead within three).
SOON, SETTLED = 0.5, 6.0


def all_tables(names: list[str], cores: list[int], rounds: int) -> Iterator[str]:
    """Each of them as Markdown, once it is measured."""
    yield idle(names, cores)
    yield start_up(names, cores, rounds)
    yield late(names, cores, rounds)
    yield variants.measured(cores, rounds)


def refused(name: str, why: str) -> str:
    """The line of a server that has no figure."""
    return f"| {name} | refused: {why} | |"


def failures(tables: str) -> list[str]:
    """The lines of these tables that say that Bridgehead itself was refused."""
    return [line for line in tables.splitlines() if line.startswith(f"| {OURS}") and "| refused: " in line]


def idle(names: list[str], cores: list[int]) -> str:
    """What connections cost that ask nothing, having asked once."""
    lines = [
        f"### {IDLE} idle connections",
        "",
        f"After {SOON} s, and settled: after {SETTLED:.0f}.",
        "",
        "| server | KiB each | µs of a core in a second | settled: KiB each | µs of a core in a second |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        print(f"idle connections: {name} …", file=sys.stderr, flush=True)
        try:
            with started(name, "apps:hello", cores[0]) as server, watched(server), ExitStack() as stack:
                line = _idle(server, stack)
        except (RuntimeError, OSError) as problem:
            line = f"{refused(name, in_a_line(problem))} | |"
        lines.append(line)
    return "\n".join([*lines, ""])


def _idle(server: Server, stack: ExitStack) -> str:
    server.signal(signal.SIGCONT)
    before = server.memory()
    clients = connections.connected(server.port, IDLE, stack)
    began, cells = time.monotonic(), []
    for moment in (SOON, SETTLED):
        time.sleep(max(began + moment - time.monotonic(), 0))
        grown, spent = server.memory() - before, server.cpu()
        time.sleep(1)
        spent = server.cpu() - spent
        if gone := connections.told(clients):
            cells += [f"refused: {gone}", ""]
        else:
            cells += [f"{grown * 1024 / IDLE:.1f}", f"{spent / 1000:,.0f}"]
    return f"| {' | '.join([server.name, *cells])} |"


def start_up(names: list[str], cores: list[int], rounds: int) -> str:
    """From the command to the first answer."""
    found: dict[str, list[float]] = {name: [] for name in names}
    wrong: dict[str, str] = {}
    for _ in range(rounds):
        for name in names:
            try:
                found[name].append(_start(name, cores[0]))
            except RuntimeError as problem:
                wrong[name] = in_a_line(problem)
    lines = [
        "### Start-up: from the command to the first answer",
        "",
        "| server | ms | least to most |",
        "|---|---|---|",
    ]
    lines += [
        f"| {name} | {statistics.median(times):.0f} | {min(times):.0f} to {max(times):.0f} |"
        for name, times in found.items()
        if name not in wrong
    ]
    lines += [refused(name, why) for name, why in wrong.items()]
    return "\n".join([*lines, ""])


def _start(name: str, core: int) -> float:
    """Milliseconds."""
    port = free_port()
    death = ""
    with TemporaryDirectory() as folder:
        command = ["taskset", "--cpu-list", str(core), *command_of(name, "apps:hello", port, Path(folder))]
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = Server(name, process, port)
        try:
            while not (death := server.death()) and time.perf_counter() - began < START_SECONDS:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                with suppress(OSError, http.client.HTTPException):
                    connection.request("GET", "/")
                    if connection.getresponse().read() == b"hello":
                        connection.close()
                        return (time.perf_counter() - began) * 1000
                connection.close()
                time.sleep(0.002)
        finally:
            end(server)
    raise RuntimeError(f"did not start: {death or f'no answer in {START_SECONDS:.0f} s'}")


def late(names: list[str], cores: list[int], rounds: int) -> str:
    """How late a timer of 10 ms is under load."""
    found: dict[str, list[float]] = {}
    lines = []
    for name in names:
        print(f"lateness: {name} …", file=sys.stderr, flush=True)
        try:
            with started(name, "apps:ticks", cores[0]) as server, watched(server):
                times = [lateness.burst(server, cores[-1], 64, 1.0) for _ in range(rounds)]
            found[name] = times
        except (RuntimeError, OSError) as problem:
            lines.append(refused(name, in_a_line(problem)))
    table = lateness.table(found, "64 busy connections").rstrip("\n")
    return "\n".join(["### Lateness of a 10 ms timer", "", table, *lines, ""])
