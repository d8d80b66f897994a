"""Counts the processor's instructions for one request: `make bench-guard`.

callgrind runs the server. The kernel is not counted: what is found is what no stopwatch on a shared machine
can find. It says nothing of time: see compare.py for that. A server that is kept waiting does more (it looks
after timers, sleeps and is woken), so a busy machine makes figures higher: each is looked at several times,
and the least counts.

Invariant: what is counted are the same requests every time, and nothing passes that was not compared: a case
without a stored figure is a fault, and another Python or compiler is said to have compared nothing.
"""

import argparse
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cases import CASES, Case, ask, connected

FOLDER = Path(__file__).resolve().parent
STORED = FOLDER / "instructions.json"
TOLERANCE = 0.03  # a figure may be so much above the stored one
WARM_UP = 300  # rounds before the count: caches are full, and Python has specialised its code
LOOKS, LOOKS_UNDER_LOAD = 5, 8  # at a figure that is too high
SETTLED = (
    0.002  # a figure that is stored is the least, once two looks have taken no more than so much from it
)
FAILED, NOT_TO_BE_ASKED = 1, 2


def main(words: Sequence[str] | None = None) -> int:
    """Count, and compare with what is stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}: say in the commit why")
    parser.add_argument("--keep", type=Path, help="keep callgrind's files in this folder")
    options = parser.parse_args(words)
    cases = [case for case in CASES if options.only in case.name]
    if not cases:
        names = ", ".join(repr(case.name) for case in CASES)
        parser.error(f"no case has {options.only!r} in its name; there are {names}")
    kept = json.loads(STORED.read_text())
    if options.store:
        return store(cases, kept, options.keep)
    if kept["made with"] != made_with():
        for case in cases:
            told(case, count(case, options.keep), None)
        print(f"NOT COMPARED: stored are figures made with {kept['made with']}, these with {made_with()}")
        return 0
    if missing := [case.name for case in cases if case.name not in kept["instructions"]]:
        parser.error(
            f"no figure is stored of {', '.join(missing)}: count them with --store, one by one by --only"
        )
    worse = sum(is_worse(case, kept["instructions"][case.name], options.keep) for case in cases)
    print(f"{len(cases)} cases counted, {worse} more than {TOLERANCE:.0%} above the stored figure")
    return FAILED if worse else 0


def store(cases: list[Case], kept: dict[str, Any], keep: Path | None) -> int:
    """Write the figures of these; those of others stay, if they are of the same Python and compiler."""
    others = {case.name for case in CASES} - {case.name for case in cases}
    if others and kept["made with"] != made_with():
        print(f"not stored: others are figures made with {kept['made with']}, and these with {made_with()}")
        return NOT_TO_BE_ASKED
    found = {name: figure for name, figure in kept["instructions"].items() if name in others}
    found |= {case.name: settled(case, keep) for case in cases}
    ordered = {case.name: found[case.name] for case in CASES if case.name in found}
    STORED.write_text(json.dumps({"made with": made_with(), "instructions": ordered}, indent=2) + "\n")
    return 0


def settled(case: Case, keep: Path | None) -> int:
    """The least of several looks: one alone may be of a server that was kept waiting."""
    least, since = count(case, keep), 0
    told(case, least, None)
    for _ in range(looks() - 1):
        found = count(case, keep)
        told(case, found, None)
        since = since + 1 if found >= least * (1 - SETTLED) else 0
        least = min(least, found)
        if since == 2:
            break
    return least


def is_worse(case: Case, stored: int, keep: Path | None) -> bool:
    """Whether it takes more than it did, however often it is looked at: the least counts."""
    least, most = None, looks()
    for _ in range(most):
        found = count(case, keep)
        told(case, found, stored)
        least = found if least is None else min(least, found)
        if least <= stored * (1 + TOLERANCE):
            return False
    print(f"{case.name:24} {least:>10,} at least, in {most} looks")
    return True


def told(case: Case, found: int, stored: int | None) -> None:
    """A line for each look."""
    change = f" {found / stored - 1:+7.1%} of {stored:,}" if stored else ""
    print(f"{case.name:24} {found:>10,} instructions{change}", flush=True)


def looks() -> int:
    """How often a figure that is too high is looked at: more often where others want the cores as well."""
    return LOOKS_UNDER_LOAD if os.getloadavg()[0] > len(os.sched_getaffinity(0)) else LOOKS


def made_with() -> dict[str, str]:
    """What a figure depends on besides our code."""
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[
        1
    ]
    return {"python": platform.python_version(), "rustc": rust, "machine": platform.machine()}


def count(case: Case, keep: Path | None) -> int:
    """Instructions for one request."""
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        counts = counted(case, folder)
        total = re.search(r"^(?:totals|summary): (\d+)", counts.read_text(), re.MULTILINE)
        assert total is not None, f"{counts} has no sum"
        return round(int(total[1]) / (case.rounds * case.connections))


def counted(case: Case, folder: Path, callers: int = 0) -> Path:
    """callgrind's own file, with what so many callers brought kept apart."""
    folder.mkdir(parents=True, exist_ok=True)
    # The server runs in another folder.
    output = folder.resolve() / f"{re.sub(r'[ /]', '-', case.name)}.out"
    with ExitStack() as stack:
        process, port = stack.enter_context(started(case, output, callers))
        clients = [stack.enter_context(connected(port, case)) for _ in range(case.connections)]
        for _ in range(WARM_UP // case.connections):
            ask(clients)
        control("--zero", process)
        for _ in range(case.rounds):
            ask(clients)
        control("--dump", process)
    return output.with_name(f"{output.name}.1")


@contextmanager
def started(case: Case, output: Path, callers: int) -> Iterator[tuple[int, int]]:
    """A server below callgrind: its process and its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        number = listening.fileno()
        command = [
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", "--quiet"),
            f"--separate-callers={callers}",
            *(sys.executable, "-m", "bridgehead", case.app, f"--fd={number}", "--no-access-log"),
            *("--loop=asyncio", "--no-date-header", *case.options),
        ]
        # The same hashes of texts every time, and no look at who reads.
        environ = {**os.environ, "PYTHONHASHSEED": "0"}
        with subprocess.Popen(
            command, cwd=FOLDER, env=environ, pass_fds=[number], stderr=subprocess.PIPE
        ) as process:
            try:
                assert process.stderr is not None
                for line in process.stderr:
                    if b"startup complete" in line:
                        break
                else:
                    # Its socket is ours, too: whoever connected would wait for nobody.
                    raise RuntimeError(f"{case.name}: the server ended with {process.wait()}")
                yield process.pid, listening.getsockname()[1]
            finally:
                process.terminate()
                process.communicate()


def control(what: str, process: int) -> None:
    """Tells callgrind."""
    subprocess.run(["callgrind_control", what, str(process)], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
