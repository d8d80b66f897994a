"""Restarts under load: no request may be lost, run twice or cut. `python loadtests/drain.py`.

A socket stays open here; server after server takes it over by `--fd`. The next one serves before the last
is told to end by SIGTERM, so whoever connects is answered throughout.

Not a test of a supervisor: it shows what one server does to its requests when it ends.

Invariant: exit code 0 only if the promise of `bridgehead.testing` was kept, nobody was refused a
connection, every server ended well, and the ledger has as many starts of the load as there were answers: a
request that was closed without one had not begun.
"""

import argparse
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import ending

from bridgehead.load import LoadOptions, Running, plan_of
from bridgehead.testing import (
    Canary,
    Entry,
    Event,
    Folder,
    Outcome,
    Report,
    ServerProcess,
    Verdict,
)
from bridgehead.testing.ledger import enrol, ids_of, sender_of

FOLDER = Path(__file__).resolve().parent
# The load's ids are its requests' numbers.
LOAD = 0
CANARIES = ("/canary", "/canary?wait=0.05", "/canary?wait=0.01&pieces=4", "/canary?wait=0.5")


def main() -> None:
    """Run, compare, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--restarts", type=int, default=5, help="[5]")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second beside the canary [200]")
    parser.add_argument("--canary-rate", type=float, default=50.0, help="requests of the canary [50]")
    parser.add_argument("option", nargs="*", help="of the server: runtime=fused loop=uvloop")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Folder(Path(folder) / "ledger")
        report, verdict = run(options, ledger)
        wrong = list(wrong_of_load(report, ledger.entries()))
    sys.exit(tell(report, verdict, wrong))


def run(options: argparse.Namespace, ledger: Folder) -> tuple[Report, Verdict]:
    """Restart while it is asked."""
    told = dict(each.split("=", 1) for each in options.option)
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1024))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = start(held, listener, ledger, told)
        enrol(ledger, LOAD)
        plan = plan_of(
            LoadOptions(
                url=f"{url}/items",
                headers=(("x-canary", "{n}"),),
                rate=options.rate,
                connections=50,
                requests=len(ids_of(LOAD)),
            )
        )
        loading = held.enter_context(Running(plan))
        rate = options.canary_rate
        canary = held.enter_context(Canary(url, CANARIES, ledger=ledger, rate=rate, bodies=True))
        for number in range(options.restarts):
            time.sleep(1)
            following = start(held, listener, ledger, told)
            began = time.monotonic()
            server.close()
            print(f"restart {number + 1}: the last one ended in {time.monotonic() - began:.2f} s", flush=True)
            server = following
        time.sleep(1)
        loading.stop()
        verdict = canary.check()
        server.close()
        closed = [each for each in canary.log if each.outcome is Outcome.CLOSED]
        new = sum(not each.kept for each in closed)
        print(f"closed without a byte: {len(closed)}, {new} of them on connections that were new")
        return loading.report(), verdict


def start(held: ExitStack, listener: socket.socket, ledger: Folder, told: dict[str, str]) -> ExitStack:
    """One more server on the same socket, which ends when this is closed, or all that is held."""
    own = held.enter_context(ExitStack())
    # Each has a descriptor of its own, for whoever is given one closes it.
    descriptor = os.dup(listener.fileno())
    try:
        own.enter_context(ServerProcess("shop:app", cwd=FOLDER, env=ledger.env, fd=descriptor, **told))
    finally:
        os.close(descriptor)
    return own


def wrong_of_load(report: Report, ledger: Iterable[Entry]) -> Iterator[str]:
    """What became of the load and may not, by the ledger."""
    ours = [entry for entry in ledger if sender_of(entry.request) == LOAD]
    begun = Counter(entry.request for entry in ours if entry.event is Event.STARTED)
    ended = {entry.request for entry in ours if entry.event is not Event.STARTED}
    answered = report.requests - report.errors
    # A connection that was kept may be closed as a request is on its way: nothing has begun then.
    closed = report.errors_by_kind.get("closed", 0) + report.errors_by_kind.get("reset", 0)
    if report.errors > closed:
        yield f"{report.errors - closed} requests of the load had neither an answer nor a close"
    # What was under way when the load ended had been begun, or had not.
    if not answered <= len(begun) <= answered + report.unfinished:
        yield f"{len(begun)} requests of the load were begun, {answered} answered, {closed} closed"
    if twice := [request for request, count in begun.items() if count > 1]:
        yield f"{len(twice)} requests of the load ran twice, as {twice[0]} did"
    if unended := begun.keys() - ended:
        yield f"{len(unended)} requests of the load never ended"


def tell(report: Report, verdict: Verdict, wrong: list[str]) -> bool:
    """Print what came; whether anything was wrong."""
    outcomes = ", ".join(f"{number} × {outcome.value}" for outcome, number in verdict.outcomes.items())
    print(f"canary: {verdict.sent} requests: {outcomes}")
    kinds = ", ".join(f"{kind}: {number}" for kind, number in report.errors_by_kind.items())
    print(f"load: {report.requests} requests, {report.errors} without an answer ({kinds or 'none'})")
    for each in verdict.violations:
        print(f"broken: {each}")
    for sentence in wrong:
        print(f"broken: {sentence}")
    if verdict.unended:
        print(f"begun and never ended: {len(verdict.unended)}")
    refused = verdict.outcomes.get(Outcome.UNREACHED, 0)
    is_bad = bool(verdict.violations or verdict.unended or refused or wrong)
    print("broken" if is_bad else "kept: nothing was lost, run twice, or cut")
    return is_bad


if __name__ == "__main__":
    ending.run(main)
