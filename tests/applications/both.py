"""Asks each application the same under uvicorn and under Bridgehead, by its own client: `make applications`.

Not a part of `make test`: the applications are large, and each has its own environment (`.ci/applications`).
Invariant: exit code 0 only if every answer is the same, every end too, and Bridgehead is who served.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogue import APPLICATIONS, Application
from served import HERE, Served


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one application under one server."""

    answers: dict[str, Any]
    exit_code: int
    tracebacks: list[str]
    seconds: float


def main() -> int:
    """Ask, compare, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = [each.name for each in APPLICATIONS]
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)} [all]")
    parser.add_argument("--only", choices=["uvicorn", "bridgehead"], help="print what one of them answers")
    told = parser.parse_args()
    if unknown := set(told.names) - set(known):
        parser.error(f"no application is called {', '.join(sorted(unknown))}")
    chosen = [each for each in APPLICATIONS if not told.names or each.name in told.names]
    if told.only:
        for each in chosen:
            print(json.dumps(outcome(each, told.only).answers))
        return 0
    print("| application | comes to uvicorn by | asked by | answers | that differ |\n|---|---|---|---|---|")
    return sum([judge(each) for each in chosen]) and 1


def judge(application: Application) -> int:
    """Print its row; how much is wrong."""
    started = time.monotonic()
    try:
        theirs, ours = (outcome(application, server) for server in ("uvicorn", "bridgehead"))
        wrong = list(differences(theirs, ours))
        count = len(theirs.answers)
    except (AssertionError, OSError) as problem:
        wrong, count = [str(problem)], 0
    title = f"{application.package} {version_of(application)}"
    cells = (title, application.way, application.client, str(count), str(len(wrong) or "none"))
    print(f"| {' | '.join(cells)} |", flush=True)
    for each in wrong:
        print(f"{application.name}: {each}", file=sys.stderr)
    print(f"{application.name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return len(wrong)


def outcome(application: Application, server: str) -> Outcome:
    """Start it, have its client ask, end it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Served(application, server, folder) as served:
            assert served.is_ours() == (server == "bridgehead"), f"not {server} is who listens"
            answers = json.loads(served.ask().splitlines()[-1])
            code = served.stop()
            said = served.said
    return Outcome(
        answers=answers,
        exit_code=code,
        tracebacks=[each[:2000] for each in said.split("Traceback (most recent call last)")[1:]],
        seconds=time.monotonic() - began,
    )


def differences(theirs: Outcome, ours: Outcome) -> list[str]:
    """What is not the same, in words."""
    names = [*theirs.answers, *(each for each in ours.answers if each not in theirs.answers)]
    wrong = [
        f"{name}: {theirs.answers.get(name)!r} under uvicorn, {ours.answers.get(name)!r} here"
        for name in names
        if theirs.answers.get(name) != ours.answers.get(name)
    ]
    if theirs.exit_code != ours.exit_code:
        wrong.append(f"it ends with {theirs.exit_code} under uvicorn, with {ours.exit_code} here")
    if len(ours.tracebacks) > len(theirs.tracebacks):
        told = "\n".join(ours.tracebacks)
        counts = f"{len(theirs.tracebacks)} tracebacks in its log under uvicorn, {len(ours.tracebacks)} here"
        wrong.append(f"{counts}:\n{told}")
    return wrong


def version_of(application: Application) -> str:
    """As its requirements pin it."""
    for line in (HERE / application.name / "requirements.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        if name.lower() == application.package.lower():
            return version
    return "?"


if __name__ == "__main__":
    sys.exit(main())
