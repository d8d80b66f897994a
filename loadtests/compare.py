"""The yardstick: Bridgehead beside its peers, `python loadtests/compare.py` prints Markdown.

Not a verdict: README.md beside this file says what the figures show and what they do not.
Invariant: only one server runs at a time, each is measured in every round, and all are ended, however
it is ended itself.
The exit code is 0 only if Bridgehead answered rightly wherever it was asked.
"""

import argparse
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

import ending
import results
import special
from bursts import ask, path_of
from lineup import Lineup, note_death
from machine import check_tools, noise, tell_machine
from results import Measured, Row
from servers import (
    BARE,
    COMMANDS,
    CONTROL,
    FOLDER,
    HYPER,
    NGINX,
    PEERS,
    RUNTIMES,
    Server,
    available,
    nginx,
    speaks,
    started,
    upstream,
)
from workloads import WORKLOADS, Workload

QUICK_PEERS = ["uvicorn", "granian"]


def main() -> None:
    """Measure each workload on each server that is there."""
    options = read_options()
    check_tools("wrk", "h2load")
    ending.by_signals()
    cores = sorted(os.sched_getaffinity(0))
    workloads = [each for each in WORKLOADS if wanted(each, options)]
    names = servers_of(options)
    head = head_of(names, cores, options)
    print(head, flush=True)
    rows: list[Row] = []
    extras: list[str] = []
    try:
        with upstream(cores[-1]):
            for _, group in groupby(workloads, key=lambda each: each.service):
                measured(list(group), names, cores, options, rows)
                keep(options.output, head, rows, extras)
            for table in special.all_tables(names, cores, options.rounds) if options.special else ():
                extras.append(table)
                keep(options.output, head, rows, extras)
    except ending.Ended as ended:
        print(keep(options.output, head, rows, extras))
        print(f"ended by {ended}: the tables have what was complete by then", file=sys.stderr)
        sys.exit(ended.code)
    print(keep(options.output, head, rows, extras))
    print(f"Noise after: {noise(cores[0])}; load average {os.getloadavg()[0]:.1f}.")
    if wrong := [*results.failures(rows), *special.failures("\n".join(extras))]:
        sys.exit("\n".join(["Bridgehead itself was refused:", *wrong]))


def head_of(names: list[str], cores: list[int], options: argparse.Namespace) -> str:
    """What the tables are to be read with."""
    lines = [
        tell_machine([name for name in names if " " not in name], cores),
        f"{options.rounds} bursts of {options.seconds} s each after one that warms up.",
        f"Noise before: {noise(cores[0])}.",
    ]
    if not BARE.exists():
        built = "cargo build --profile bench -p bridgehead-load --example bare"
        lines.append(f"{HYPER} is not built, so there is no limit, and no aim beside one: `{built}`.")
    return "\n".join([*lines, ""])


def keep(file: str | None, head: str, rows: list[Row], extras: list[str]) -> str:
    """All tables; in the file, if there is one, below what they are to be read with."""
    report = "\n".join([results.summary(rows), *map(results.details, rows), *extras])
    if file:
        Path(file).write_text(f"{head}\n{report}")
    return report


def read_options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few workloads and peers, in two minutes")
    parser.add_argument("--rounds", type=int, default=4, help="bursts for each server and workload [4]")
    parser.add_argument("--seconds", type=int, default=1, help="length of a burst [1]")
    parser.add_argument("--servers", nargs="+", choices=[*COMMANDS, *RUNTIMES], help="[all]")
    parser.add_argument("--only", default="", metavar="TEXT", help="the workloads with this in their names")
    parser.add_argument("--runtimes", action="store_true", help="bridgehead in each runtime on each loop")
    parser.add_argument("--output", metavar="FILE", help="write the tables there, too")
    options = parser.parse_args()
    if min(options.rounds, options.seconds) < 1:
        parser.error("rounds and seconds begin at 1: there is no median of nothing")
    if not any(wanted(each, options) for each in WORKLOADS):
        names = ", ".join(repr(each.name) for each in WORKLOADS if each.quick or not options.quick)
        parser.error(f"no workload has {options.only!r} in its name; there are {names}")
    options.special = not options.quick and not options.only
    return options


def wanted(workload: Workload, options: argparse.Namespace) -> bool:
    """Whether it is among those that were asked for."""
    return options.only in workload.name and (workload.quick or not options.quick)


def servers_of(options: argparse.Namespace) -> list[str]:
    """Those to measure, ours first; what is not installed is said."""
    named = options.servers or ["bridgehead", CONTROL, *(QUICK_PEERS if options.quick else PEERS)]
    named += [each for each in RUNTIMES if options.runtimes and each not in named]
    there = available(named)
    missing = [name for name in named if name not in there]
    missing += [NGINX] if not nginx() and any(asks_nginx(each, options) for each in WORKLOADS) else []
    if missing:
        print(f"not installed, and left out: {', '.join(missing)}", file=sys.stderr)
    return there


def asks_nginx(workload: Workload, options: argparse.Namespace) -> bool:
    """Whether its row has nginx, where that is installed; the quick table has no time for it."""
    return workload.nginx is not None and not options.quick and wanted(workload, options)


def measured(
    workloads: list[Workload],
    names: list[str],
    cores: list[int],
    options: argparse.Namespace,
    complete: list[Row],
) -> None:
    """The workloads of one service: its servers are started once, and anew if they die.

    A row is added to those that are complete once it is, for whoever ends it before the next is.
    """
    app, what = workloads[0].service
    limits = [HYPER] if BARE.exists() else []
    limits += [NGINX] if nginx() and any(asks_nginx(each, options) for each in workloads) else []
    rows = [Row(workload, call_alone(workload, cores[0])) for workload in workloads]
    asked = [*filter(lambda name: speaks(name, what), names), *limits]
    with ExitStack() as stack:
        lineup = Lineup(lambda name: stack.enter_context(started(name, app, cores[0], what)))
        for row in rows:
            print(f"{row.workload.name} …", file=sys.stderr, flush=True)
            measure(row, lineup.stand(asked, row), cores[-1], options)
            complete.append(row)


def measure(row: Row, servers: list[Server], core: int, options: argparse.Namespace) -> None:
    """Bursts in turn, so that what the machine does besides meets all; the first of each warms up."""
    asked = [server for server in servers if path_of(server.name, row.workload) is not None]
    for server in asked:
        row.servers[server.name] = Measured()
    for number in range(options.rounds + 1):
        # Whoever is always first meets another machine than who comes after.
        for server in asked if number % 2 else asked[::-1]:
            found = row.servers[server.name]
            if not found.wrong and not is_spared(server.name, number, options):
                server.signal(signal.SIGCONT)
                one = ask(server, row.workload, core, options.seconds, found)
                note_death(server, found)
                server.signal(signal.SIGSTOP)
                found.bursts += [one] if number and one and not found.wrong else []


def is_spared(name: str, number: int, options: argparse.Namespace) -> bool:
    """The quick table has two minutes: hyper, which varies least and has nothing to warm, is asked less."""
    return options.quick and name == HYPER and number < min(2, options.rounds)


def call_alone(workload: Workload, core: int) -> float | None:
    """Microseconds of a core for the application without a server."""
    words = [workload.app, str(workload.concurrency), workload.path, workload.body.decode(), workload.speaks]
    command = ["taskset", "--cpu-list", str(core), sys.executable, str(FOLDER / "alone.py"), *words]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-500:], file=sys.stderr)
    return float(done.stdout) if done.returncode == 0 else None


if __name__ == "__main__":
    main()
