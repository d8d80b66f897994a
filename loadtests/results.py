"""What was measured, and the Markdown that shows it.

Not a verdict: README.md says how a number is read.

Invariant: a server that answered wrongly has no figure.
"""

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from servers import CONTROL, HYPER, NGINX
from workloads import Workload

OURS = "bridgehead"
ALONE = "the Python call alone"
MARKED = (
    "**aim**: of / limit; ✓ where it is met: the median, less half of what the control's bursts differ by, "
    "is not above it. The aims are meant for five bursts."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """One burst: microseconds of a core for each answer, answers a second, latencies in seconds."""

    cpu: float
    rate: float
    p50: float | None
    p99: float | None


@dataclass(slots=True)
class Measured:
    """One server under one workload."""

    bursts: list[Burst] = field(default_factory=list)
    memory: float = 0.0
    wrong: str = ""

    @property
    def cpu(self) -> float:
        """The median."""
        return statistics.median(burst.cpu for burst in self.bursts)

    @property
    def rate(self) -> float:
        """The median."""
        return statistics.median(burst.rate for burst in self.bursts)

    @property
    def cores(self) -> float:
        """How much of a core it had."""
        return self.cpu * self.rate / 1e6

    def late(self, name: str) -> float | None:
        """The median of `p50` or `p99`, if its client tells it."""
        values = [value for burst in self.bursts if (value := getattr(burst, name)) is not None]
        return statistics.median(values) if values else None


@dataclass(slots=True)
class Row:
    """All servers under one workload, and the Python call."""

    workload: Workload
    call: float | None = None
    servers: dict[str, Measured] = field(default_factory=dict)

    def good(self) -> dict[str, Measured]:
        """Those that have figures."""
        return {name: each for name, each in self.servers.items() if each.bursts and not each.wrong}

    def refused(self) -> dict[str, str]:
        """Those that have none, and why."""
        return {
            name: each.wrong or "not measured"
            for name, each in self.servers.items()
            if each.wrong or not each.bursts
        }

    @property
    def limit(self) -> float | None:
        """What hyper and the Python call come to."""
        hyper = self.good().get(HYPER)
        return hyper.cpu + self.call if hyper and self.call is not None else None

    @property
    def slack(self) -> float:
        """Half of what the control's bursts differ by: so much above an aim is not above it."""
        control = self.good().get(CONTROL)
        costs = [burst.cpu for burst in control.bursts] if control else [0.0]
        return (max(costs) - min(costs)) / 2

    def meets_its_aim(self) -> bool:
        """Whether Bridgehead is there, so far as it can be told."""
        aim, ours, peer = self.workload.aim, self.good().get(OURS), self.best_peer
        if aim is None or ours is None:
            return False
        if aim == "below all":
            return peer is not None and ours.cpu - self.slack < self.good()[peer].cpu
        return self.limit is not None and ours.cpu - self.slack <= aim * self.limit

    @property
    def best_peer(self) -> str | None:
        """The one that costs least."""
        peers = {
            name: each
            for name, each in self.good().items()
            if not name.startswith(OURS) and name not in (HYPER, NGINX)
        }
        return min(peers, key=lambda name: peers[name].cpu, default=None)


def summary(rows: Iterable[Row]) -> str:
    """A line for each workload."""
    ours = ("workload", "Bridgehead, µs", "again")
    others = ("best peer, µs", "/ peer", "cores of both", "limit, µs", "/ limit", "aim", "p99 / peer")
    lines = [f"| {' | '.join([*ours, *others])} |", f"|{'---|' * (len(ours) + len(others))}"]
    lines += [_summed(row) for row in rows if OURS in row.servers]
    return "\n".join([*lines, "", MARKED, ""])


def failures(rows: Iterable[Row]) -> list[str]:
    """Where Bridgehead itself has no figure: a table of the others is no result then."""
    return [
        f"{row.workload.name}: {name}: {why}"
        for row in rows
        for name, why in row.refused().items()
        if name.startswith(OURS)
    ]


def _summed(row: Row) -> str:
    good = row.good()
    if why := row.refused().get(OURS):
        return f"| {row.workload.name} | **refused: {why}** | | | | | | | | |"
    ours, control = good[OURS], good.get(CONTROL)
    peer = good[row.best_peer] if row.best_peer else None
    p99s = ours.late("p99"), peer.late("p99") if peer else None
    cells = [
        row.workload.name,
        f"{ours.cpu:.1f}",
        f"{control.cpu / ours.cpu - 1:+.0%}" if control else "",
        f"{peer.cpu:.1f} ({row.best_peer})" if peer else "",
        f"**{ours.cpu / peer.cpu:.2f}**" if peer else "",
        f"{ours.cores:.2f}, {peer.cores:.2f}" if peer else "",
        f"{row.limit:.1f}" if row.limit else "",
        f"{ours.cpu / row.limit:.2f}" if row.limit else "",
        _aimed(row),
        f"{p99s[0] / p99s[1]:.2f}" if p99s[0] and p99s[1] else "",
    ]
    return f"| {' | '.join(cells)} |"


def _aimed(row: Row) -> str:
    """An aim, and whether it is met: nothing is said of one that there is nothing to judge by."""
    aim = row.workload.aim
    return "" if aim is None else f"{aim}{' ✓' if row.meets_its_aim() else ''}"


def details(row: Row) -> str:
    """A table of one workload."""
    head = "| server | CPU µs per answer | least to most | answers a second | cores | p50 | p99 | MiB |"
    lines = [f"### {row.workload.name}", "", head, "|---|---|---|---|---|---|---|---|"]
    lines += _lines(row)
    return "\n".join([*lines, ""])


def _lines(row: Row) -> Iterator[str]:
    for name, each in row.good().items():
        costs = [burst.cpu for burst in each.bursts]
        cells = [
            name,
            f"{each.cpu:.1f}",
            f"{min(costs):.1f} to {max(costs):.1f}",
            f"{each.rate:,.0f}",
            f"{each.cores:.2f}",
            *(_milliseconds(each.late(which)) for which in ("p50", "p99")),
            f"{each.memory:.0f}",
        ]
        yield f"| {' | '.join(cells)} |"
    for name, why in row.refused().items():
        yield f"| {name} | refused: {why} | | | | | | |"
    if row.call is not None:
        yield f"| {ALONE} | {row.call:.1f} | | | | | | |"
    if row.limit is not None:
        yield f"| limit: hyper and the call | {row.limit:.1f} | | | | | | |"


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.2f} ms"
