"""The machine that figures are from, and how much else it does.

Not a benchmark of it.

Invariant: what a figure is worth nothing without is printed with it.
"""

import importlib.metadata
import importlib.util
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# What answers beside a server: loops and parsers, then frameworks and theirs.
ALONGSIDE = (
    *("uvloop", "httptools", "zttp", "h11", "h2", "hpack", "hyperframe", "priority", "wsproto", "websockets"),
    *("starlette", "fastapi", "pydantic", "pydantic_core", "anyio"),
)
_SPIN = 200_000
_SPINS = 50


def check_tools(*tools: str) -> None:
    """End here if something is missing."""
    missing = [each for each in ("taskset", *tools) if not shutil.which(each)]
    if missing or not Path("/proc/self/schedstat").exists():
        sys.exit(f"needs Linux with /proc/PID/schedstat{''.join(f', {each}' for each in missing)}")
    # 1024 connections, and the server's are not ours.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def tell_machine(names: list[str], cores: list[int] | None = None) -> str:
    """Everything that a table is to be read with; `cores`: the server's and the client's, if told."""
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    processor = found[1] if found else platform.machine()
    versions = {each: importlib.metadata.version(each) for each in (*names, *ALONGSIDE) if installed(each)}
    lines = [
        f"{datetime.now():%Y-%m-%d %H:%M}, Linux {platform.release()}, Python {platform.python_version()},",
        f"{processor}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f};",
        ", ".join(f"{each} {version}" for each, version in versions.items()) + (";" if cores else "."),
    ]
    if cores:
        lines.append(f"server on core {cores[0]}, client on core {cores[-1]}.")
    if cores and cores[0] == cores[-1]:
        lines.append("Both share one core: only the CPU column means anything.")
    lines.append(tell_build())
    return "\n".join(lines)


def tell_build() -> str:
    """Of which commit Bridgehead is."""
    native = importlib.util.find_spec("bridgehead._native")
    if native and native.origin and Path(native.origin).is_relative_to(FOLDER.parent / "python"):
        told = f"Bridgehead is loaded from the source tree, at {described()}"
        return f"{told}: usually a quick build, not the release."
    # The tree may be another one by now, so `environment` notes it beside the wheel that it installs.
    with suppress(OSError):
        return f"Bridgehead is a wheel of {(Path(sys.prefix) / 'wheel-of').read_text().strip()}."
    return "Bridgehead is a wheel of a commit that nobody noted: loadtests/environment does."


def described() -> str:
    """The commit of the tree, and whether it has been changed since."""
    command = ["git", "-C", str(FOLDER), "describe", "--always", "--dirty"]
    with suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return "a commit that git does not tell"


def installed(name: str) -> bool:
    """Whether there is such a distribution."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return bool(importlib.metadata.version(name))
    return False


def noise(core: int) -> str:
    """`slowdown` in words."""
    slow, worst = slowdown(core)
    return f"work on core {core} takes {slow:.0%} longer than the median 1 time in 10, {worst:.0%} at worst"


def slowdown(core: int) -> tuple[float, float]:
    """How much longer than usual the same work takes on an idle core: 1 time in 10, and at worst."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    times = sorted(_spin() for _ in range(_SPINS))
    os.sched_setaffinity(0, before)
    median = statistics.median(times)
    return times[int(0.9 * _SPINS)] / median - 1, times[-1] / median - 1


def _spin() -> float:
    began = time.perf_counter()
    for _ in range(_SPIN):
        pass
    return time.perf_counter() - began
