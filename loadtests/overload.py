"""More requests than can be answered, up to four times as many, under `--limit-concurrency auto`.

`make overload` runs it, and writes `docs/overload.svg` and the figures in `docs/overload.md`. It is no test:
exit code 0 says that there are figures, and each of the two promises is told as kept or not. Figures of a
machine that has something else to do are those of that machine, and the page says so.

Invariant: what is compared was measured in the same run, with the same generator.
"""

import argparse
import dataclasses
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import ending
from machine import check_tools, noise, slowdown, tell_machine
from overload_plot import Curve, plot

from bridgehead.load import load
from bridgehead.load.report import Report
from bridgehead.testing import ServerProcess

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER.parent / "docs"
TIMES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
# Of whom nobody waits for a place: as many as may wait in the queue, and as are refused meanwhile.
CLIENTS = 2500
QUEUE_DEADLINE = 1.0
# An idle core takes no more than this longer for the same work 1 time in 10. Not the load average, which
# remembers the build before.
QUIET = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What came of a rate."""

    times: float  # of what the server can answer
    offered: float
    goodput: float
    p50: float
    p99: float
    refused: int
    lost: int  # errors that are no 503, and what the generator did not get to


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A run."""

    machine: str
    busy: bool
    seconds: float
    unloaded_p99: float
    peak: float
    auto: tuple[Point, ...]
    fixed: tuple[Point, ...]


def main() -> None:
    """Measure, write, and say what was kept of the promises."""
    options = read_options()
    check_tools()
    cores = sorted(os.sched_getaffinity(0))
    # Before there is any load of ours.
    busy = slowdown(cores[0])[0] > QUIET
    machine = f"{tell_machine(['bridgehead'], cores)}\n{noise(cores[0])}."
    minutes = (2 * (options.seconds + 2) + 2 * len(TIMES) * 1.5 * options.seconds) / 60
    print(f"{machine}\n{minutes:.1f} minutes; busy: {busy}", file=sys.stderr, flush=True)
    figures = measure(options, machine, busy=busy)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(dataclasses.asdict(figures), indent=1) + "\n")
    if options.write:
        (DOCS / "overload.svg").write_text(picture(figures))
        page = DOCS / "overload.md"
        page.write_text(filled_in(page.read_text(), words(figures)))
    print(words(figures))


def read_options() -> argparse.Namespace:
    """How long, and where to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each rate [8]")
    parser.add_argument("--json", type=Path, default=FOLDER.parent / "target" / "overload.json")
    parser.add_argument("--write", action="store_true", help="put the figures and the plot into docs/")
    return parser.parse_args()


def measure(options: argparse.Namespace, machine: str, *, busy: bool) -> Figures:
    """Alone, at its best, and at each rate; then the rates again under a limit that does not follow."""
    with server("1000") as does_not:
        alone = load(does_not.url, connections=1, rate=10, duration=options.seconds, warmup=2)
        # A closed loop that keeps it busy: nobody is refused, and it answers as much as it can.
        best = load(does_not.url, connections=64, duration=options.seconds, warmup=2)
    with server("auto") as adapts:
        auto = tuple(point(adapts, times, best.rps, options.seconds) for times in TIMES)
    with server("1000") as does_not:
        fixed = tuple(point(does_not, times, best.rps, options.seconds) for times in TIMES)
    return Figures(
        machine=machine,
        busy=busy,
        seconds=options.seconds,
        unloaded_p99=alone.p99,
        peak=max(best.rps, *(each.goodput for each in (*auto, *fixed))),
        auto=auto,
        fixed=fixed,
    )


def server(limit: str) -> ServerProcess:
    """One worker under this limit."""
    return ServerProcess(
        "queueing:app", cwd=FOLDER, limit_concurrency=limit, timeout_queue=QUEUE_DEADLINE, access_log=False
    )


def point(running: ServerProcess, times: float, peak: float, seconds: float) -> Point:
    """An open loop: what is due is asked for, whether answers come or not."""
    rate = max(1.0, times * peak)
    report: Report = load(running.url, connections=CLIENTS, rate=rate, duration=seconds, warmup=seconds / 2)
    refused = report.statuses.get("503", 0)
    made = Point(
        times=times,
        offered=rate,
        goodput=report.rps,
        p50=report.p50,
        p99=report.p99,
        refused=refused,
        lost=report.errors - refused + report.unsent,
    )
    print(f"{times:4.2f}x: {made}", file=sys.stderr, flush=True)
    return made


def picture(figures: Figures) -> str:
    """Both questions, both limits."""

    def curves(read: str) -> list[Curve]:
        sides = (("auto", figures.auto), ("1000", figures.fixed))
        return [
            Curve(name=name, points=tuple((each.times, getattr(each, read)) for each in side))
            for name, side in sides
        ]

    bound = 2 * figures.unloaded_p99 + QUEUE_DEADLINE
    return plot(
        [
            ("answered each second", curves("goodput"), 0.9 * figures.peak, "90 % of the peak"),
            ("p99 of those that are answered, s", curves("p99"), bound, "2 x unloaded + queue deadline"),
        ]
    )


def words(figures: Figures) -> str:
    """For the page, as Markdown."""
    rows = [
        f"| {one.times:g} | {one.offered:.0f} | {one.goodput:.0f} | {one.p99 * 1e3:.0f} ms | {one.refused} "
        f"| {other.goodput:.0f} | {other.p99 * 1e3:.0f} ms | {one.lost + other.lost} |"
        for one, other in zip(figures.auto, figures.fixed, strict=True)
    ]
    most = figures.auto[-1]
    bound = 2 * figures.unloaded_p99 + QUEUE_DEADLINE
    kept = {True: "kept", False: "**not kept in this run**"}
    warning = (
        [
            "**The machine had something else to do: these are not the figures of a quiet one.**",
            "",
        ]
        if figures.busy
        else []
    )
    return "\n".join(
        [
            *warning,
            *(f"    {line}" for line in figures.machine.splitlines()),
            "",
            f"Alone a request takes {figures.unloaded_p99 * 1e3:.0f} ms (p99); at most {figures.peak:.0f} "
            f"are answered each second; {figures.seconds:g} s for each row.",
            "",
            "| × saturation | offered /s | `auto`: answered /s | p99 | refused "
            "| `1000`: answered /s | p99 | lost |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            f"- At 4×, `auto` answers {most.goodput / figures.peak:.0%} of the peak; 90 % were promised: "
            f"{kept[most.goodput >= 0.9 * figures.peak]}.",
            f"- At 4×, p99 is {most.p99:.2f} s; {bound:.2f} s, twice the unloaded and the queue's deadline, "
            f"were promised: {kept[most.p99 <= bound]}.",
        ]
    )


def filled_in(page: str, figures: str) -> str:
    """The page with these figures between its two marks."""
    marks = re.compile(r"(<!-- figures -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(page):
        sys.exit("docs/overload.md has no place for figures: <!-- figures --> and <!-- end --> were due")
    return marks.sub(lambda found: f"{found[1]}\n{figures}\n\n{found[2]}", page)


if __name__ == "__main__":
    ending.run(main)
