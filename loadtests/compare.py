"""Measures Bridgehead beside its peers: `python loadtests/compare.py` prints a Markdown table.

Not a verdict: README.md beside this file says what the figures show and what they do not.
Invariant: only one server runs at a time, each is measured in every round, and all are ended.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
APPS = {
    "hello": "answers at once",
    "reads": "awaits `receive()` first",
    "asks": "asks another server over a socket first",
}
# One worker each, no access log (granian has none unless asked), the loop that each picks by itself.
OPTIONS = {"bridgehead": ["--no-access-log"], "uvicorn": ["--no-access-log"], "granian": ["--interface=asgi"]}
RUNTIMES = [(runtime, loop) for runtime in ("fused", "threaded") for loop in ("asyncio", "uvloop")]
ALONGSIDE = ("uvloop", "httptools")
START_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What one burst of load came to."""

    cpu_per_answer: float  # microseconds, over all threads of the server
    answers_per_second: float
    errors: str


@dataclass(slots=True)
class Server:
    """A running server: the root of its process tree, and where it listens."""

    name: str
    root: int
    port: int
    bursts: list[Burst] = field(default_factory=list)

    def tree(self) -> list[int]:
        """Its processes, parents first."""
        found = [self.root]
        for parent in found:
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                with suppress(OSError):
                    found += map(int, children.read_text().split())
        return found

    def signal(self, number: signal.Signals) -> None:
        """Sends it to each of them."""
        for process in self.tree():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def cpu(self) -> int:
        """Nanoseconds that its threads have been on a core so far."""
        total = 0
        for process in self.tree():
            for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
                with suppress(OSError):
                    total += int(thread.read_text().split()[0])
        return total


def main() -> None:
    """Measure each application on each server that is there."""
    options = read_options()
    names = [name for name in OPTIONS if importlib.util.find_spec(name)]
    cores = sorted(os.sched_getaffinity(0))
    tell_machine(names, cores)
    print(f"{options.connections} connections, {options.rounds} bursts of 1 s each.\n")
    lines = [[name] for name in names if name != "bridgehead" or not options.runtimes]
    if options.runtimes:
        lines = [*by_runtime(), *lines]
    with upstream(cores[-1]):
        for app in options.apps:
            with ExitStack() as stack:
                servers = [stack.enter_context(started(words, app, cores[0])) for words in lines]
                measure(servers, cores[-1], options)
                print(table(servers, f"`{app}`: {APPS[app]}"), flush=True)


def by_runtime() -> list[list[str]]:
    """Bridgehead in each runtime on each loop."""
    return [["bridgehead", "--runtime", runtime, "--loop", loop] for runtime, loop in RUNTIMES]


@contextmanager
def upstream(core: int) -> Iterator[None]:
    """The server that `apps:asks` asks, beside wrk."""
    command = ["taskset", "--cpu-list", str(core), sys.executable, FOLDER / "upstream.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            os.environ["UPSTREAM_PORT"] = process.stdout.readline().strip()
            yield
        finally:
            process.terminate()


def read_options() -> argparse.Namespace:
    """What was asked for, on a machine that can do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="bursts for each server and application [9]")
    parser.add_argument("--connections", type=int, default=64, help="connections of wrk [64]")
    parser.add_argument("--apps", nargs="+", default=["hello", "reads"], choices=APPS, help="[hello reads]")
    parser.add_argument("--runtimes", action="store_true", help="bridgehead in each runtime on each loop")
    options = parser.parse_args()
    check_tools()
    return options


def check_tools() -> None:
    """End here if something is missing."""
    if not shutil.which("wrk") or not Path("/proc/self/schedstat").exists():
        sys.exit("needs Linux with /proc/PID/schedstat, and wrk")


def tell_machine(names: list[str], cores: list[int]) -> None:
    """Print what a figure is worth nothing without."""
    processor = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    versions = {each: importlib.metadata.version(each) for each in (*names, *ALONGSIDE) if installed(each)}
    print(f"{datetime.now():%Y-%m-%d %H:%M}, Linux {platform.release()}, Python {platform.python_version()},")
    print(f"{processor[1] if processor else platform.machine()}, {os.cpu_count()} cores,", end=" ")
    print(f"load average {os.getloadavg()[0]:.1f};")
    print(", ".join(f"{each} {version}" for each, version in versions.items()) + ";")
    print(f"server on core {cores[0]}, wrk on core {cores[-1]}.")
    if cores[0] == cores[-1]:
        print("Both share one core: only the CPU column means anything.")
    native = importlib.util.find_spec("bridgehead._native")
    if native and native.origin and Path(native.origin).is_relative_to(FOLDER.parent / "python"):
        print("Bridgehead is loaded from the source tree: usually a quick build, not the release.")


def installed(name: str) -> bool:
    """Whether there is such a distribution."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return bool(importlib.metadata.version(name))
    return False


@contextmanager
def started(words: list[str], app: str, core: int) -> Iterator[Server]:
    """A server on one core, stopped by SIGSTOP until it is measured; a module, and its options if any."""
    name, *given = words
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [name, f"apps:{app}", f"--port={port}", "--log-level=warning", *OPTIONS[name], *given]
    command = ["taskset", "--cpu-list", str(core), sys.executable, "-m", *words]
    process = subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.DEVNULL)
    server = Server(" ".join([name, *given[1::2]]), process.pid, port)
    try:
        await_listening(process, port)
        server.signal(signal.SIGSTOP)
        yield server
    finally:
        left = server.tree()
        server.signal(signal.SIGCONT)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        for each in left:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.wait()


def await_listening(process: subprocess.Popen[bytes], port: int) -> None:
    """Until it takes a connection; one that does not is the end."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    sys.exit(f"{' '.join(map(str, process.args))} did not start")  # type: ignore[arg-type]


def measure(servers: list[Server], core: int, options: argparse.Namespace) -> None:
    """Bursts in turn, so that what the machine does besides meets all; the first of each warms up."""
    for number in range(options.rounds + 1):
        for server in servers:
            server.signal(signal.SIGCONT)
            burst = load(server, core, options.connections)
            server.signal(signal.SIGSTOP)
            server.bursts += [burst] if number else []


def load(server: Server, core: int, connections: int) -> Burst:
    """One second of wrk, and what it cost the server."""
    url = f"http://127.0.0.1:{server.port}/"
    command = ["taskset", "--cpu-list", str(core), "wrk", "-t1", f"-c{connections}", "-d1s", url]
    before = server.cpu()
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    spent = server.cpu() - before
    count, rate = re.search(r"(\d+) requests in", said), re.search(r"Requests/sec:\s*([\d.]+)", said)
    if count is None or rate is None or count[1] == "0":
        sys.exit(f"{server.name} answered nothing:\n{said}")
    errors = "; ".join(re.findall(r"(?:Non-2xx|Socket errors).*", said))
    cost = spent / int(count[1]) / 1000
    return Burst(cpu_per_answer=cost, answers_per_second=float(rate[1]), errors=errors)


def table(servers: list[Server], title: str) -> str:
    """Medians over the bursts, as Markdown."""
    head = "| server | CPU µs per answer | least to most | answers per second |"
    lines = [f"**{title}**", "", head, "|---|---|---|---|"]
    for server in servers:
        costs = [burst.cpu_per_answer for burst in server.bursts]
        rate = statistics.median(burst.answers_per_second for burst in server.bursts)
        cost = f"{statistics.median(costs):.1f} | {min(costs):.1f} to {max(costs):.1f}"
        lines.append(f"| {server.name} | {cost} | {rate:,.0f} |")
    complaints = {f"{each.name}: {burst.errors}" for each in servers for burst in each.bursts if burst.errors}
    return "\n".join([*lines, *sorted(complaints), ""])


if __name__ == "__main__":
    main()
