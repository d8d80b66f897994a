"""Reloads under load, and what they cost in latency: `python loadtests/reloads.py` prints a Markdown table.

An application that takes 4 s to import is reloaded by SIGHUP again and again, each time once the last reload
is complete, while requests come at a fixed rate. Before that the same load runs for as long without a reload.
`drain.py` is the same for SIGTERM.

Not a verdict on the times: README.md beside this file says what a machine that others use does to them.

Invariant: exit code 0 only if no request failed, the promise of `bridgehead.testing` was kept, and each
worker came up.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import ending
from machine import tell_machine

from bridgehead.load import LoadOptions, Report, Running, plan_of
from bridgehead.testing import Canary, Folder, ServerProcess, Verdict
from bridgehead.testing.promise import Outcome

APP = "import time\ntime.sleep({seconds})\nfrom bridgehead.testing.canary_app import app\n"
PATHS = ("/", "/?wait=0.02")
COMPLETE = "The reload is complete."
SUCCEEDED = "Another process serves from here on."
PATIENCE = 60.0  # seconds for one reload


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The two loads, and what the canary has seen."""

    steady: Report
    reloads: Report
    verdict: Verdict


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reloads", type=int, default=10, help="[10]")
    parser.add_argument("--workers", type=int, default=2, help="1: one process, and then its successors [2]")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second [200]")
    parser.add_argument("--canary-rate", type=float, default=20.0, help="requests of the canary [20]")
    parser.add_argument("--import-seconds", type=float, default=4.0, help="of the application [4]")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two reloads [1]")
    parser.add_argument("--output", help="write the table to this file as well")
    parser.add_argument("option", nargs="*", help="of the server: runtime=fused loop=uvloop")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(options, Path(folder))
    wrong = list(wrong_of(measured))
    text = f"{tell_machine(['bridgehead'])}\n\n{table(measured)}"
    text += "".join(f"broken: {each}\n" for each in wrong)
    print(text)
    if options.output:
        Path(options.output).write_text(text)
    sys.exit(bool(wrong))


def measure(options: argparse.Namespace, folder: Path) -> Measured:
    """Without a reload, then with them, of one server."""
    (folder / "main.py").write_text(APP.format(seconds=options.import_seconds))
    ledger = Folder(folder / "ledger")
    told = dict(each.split("=", 1) for each in options.option)
    with ExitStack() as held:
        server = held.enter_context(
            ServerProcess(
                "main:app", cwd=folder, env=ledger.env, workers=options.workers, lifespan="off", **told
            )
        )
        if options.workers > 1:
            server.logs.wait_for(" workers are ready.", timeout=PATIENCE)
        canary = held.enter_context(Canary(server.url, PATHS, ledger=ledger, rate=options.canary_rate))
        seconds = options.reloads * (options.workers * options.import_seconds + options.pause)
        steady = load(server.url, options, lambda: time.sleep(seconds))
        reloads = load(server.url, options, lambda: reload_all(server, options))
        return Measured(steady=steady, reloads=reloads, verdict=canary.check())


def load(url: str, options: argparse.Namespace, meanwhile) -> Report:
    """Requests at a fixed rate, for as long as `meanwhile` takes."""
    plan = plan_of(LoadOptions(url=f"{url}/", rate=options.rate, connections=50, duration=3600.0))
    with Running(plan) as running:
        meanwhile()
        running.stop()
        return running.report()


def reload_all(server: ServerProcess, options: argparse.Namespace) -> None:
    """By SIGHUP. The first one of a single process makes it the parent of its successor."""
    alone = options.workers == 1
    for number in range(1, options.reloads + 1):
        began = time.monotonic()
        server.process.send_signal(signal.SIGHUP)
        if alone and number == 1:
            server.logs.wait_for(SUCCEEDED, timeout=PATIENCE)
        else:
            server.logs.wait_for(COMPLETE, count=number - alone, timeout=PATIENCE)
        print(f"reload {number}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
        time.sleep(options.pause)


def wrong_of(measured: Measured) -> Iterator[str]:
    """What may not be."""
    for name, report in (("steady", measured.steady), ("reloads", measured.reloads)):
        if report.errors:
            yield f"{report.errors} requests failed, {name}: {dict(report.errors_by_kind)}"
    yield from map(str, measured.verdict.violations)
    for outcome, number in measured.verdict.outcomes.items():
        if outcome is not Outcome.ANSWERED:
            yield f"{number} × {outcome.value}"


def table(measured: Measured) -> str:
    """For people."""
    lines = ["| | requests | failed | p50 | p99 | p99.9 | worst |", "|---|---|---|---|---|---|---|"]
    rows = {"no reload": measured.steady, "reloads": measured.reloads}
    for name, report in rows.items():
        times = asdict(report.latency)
        cells = [f"{times[each] * 1000:.1f} ms" for each in ("p50", "p99", "p999", "max")]
        lines.append(f"| {' | '.join([name, f'{report.requests:,}', str(report.errors), *cells])} |")
    more = (measured.reloads.latency.max - measured.steady.latency.max) * 1000
    lines.append(f"\nThe worst request of the reloads took {more:+.0f} ms beside the worst one without.")
    return "\n".join([*lines, f"The canary asked {measured.verdict.sent} times.", ""])


if __name__ == "__main__":
    ending.run(main)
