"""All of the table, every cut and many clients, and what each attack costs: `make faults` runs it.

Not a test: it takes minutes, and looks at processor time. What is due, `corpus.py` and `attacks.py` assert.
Invariant: exit code 0 only if every input came to what the table says, no canary lost a request, and nothing
cost more than a hundred times what its client spent.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "differential")]

import http2_attacks  # noqa: E402
import test_obfuscations  # noqa: E402
import websocket_attacks  # noqa: E402
from attacks import ATTACKS as PLAIN  # noqa: E402
from attacks import Spent  # noqa: E402
from corpus import PATHS, Corpus, all_cuts, serving, whole  # noqa: E402
from harness import Server  # noqa: E402
from judges import JUDGES  # noqa: E402
from odd_requests import odd_request  # noqa: E402
from ours import FOLLOWER, read_by_us  # noqa: E402
from table import rows  # noqa: E402
from test_differential import compare  # noqa: E402

from bridgehead.testing import Canary, Folder, Outcome  # noqa: E402

ATTACKS = {**PLAIN, **http2_attacks.ATTACKS, **websocket_attacks.ATTACKS}
# Times that an attack can wait for.
SHORT = ["--timeout-first-byte", "2s", "--timeout-header", "2s", "--timeout-write", "2s"]
OPTIONS = {"ends_of_idle_connections": ["--timeout-keep-alive", "50ms"]}
SCALE = {
    "silent_clients": 1000,
    "unfinished_heads": 2000,
    "trickling_heads": 500,
    "trickling_bodies": 200,
    "chunks_of_a_byte": 100_000,
    "chunks_with_extensions": 100_000,
    "floods_of_headers": 20,
    "clients_that_never_read": 100,
    "clients_that_never_read_odd_pieces": 100,
    "clients_that_never_read_small_pieces": 100,
    "resets_anywhere": 5000,
    "ends_of_idle_connections": 500,
    "new_connections": 2000,
    "pipelines": 5,
    "idle_http2": 1000,
    "idle_http2_with_settings": 1000,
    "idle_http2_in_pieces": 1000,
    "streams_broken_off": 4,
    "packed_heads": 20,
    "pinned_streams": 4,
    "held_streams": 4,
    "websockets_of_http2": 10,
    "windows_of_a_byte": 4,
    "inflated_messages": 1500,
    "compressed_connections": 500,
}
# What limits grant to a connection (docs/limits.md), which is no growth beyond them: 64 KiB of each answer;
# of each request that runs its head as it is unpacked, and what Python has of it.
GRANTED = {
    "clients_that_never_read": 64 * 1024,
    "clients_that_never_read_odd_pieces": 64 * 1024,
    "clients_that_never_read_small_pieces": 64 * 1024,
    "pinned_streams": 100 * 64 * 1024,
    "held_streams": 100 * (32 + 12) * 1024,
    # Windows and tables, which are lent from what all WebSockets have together.
    "compressed_connections": (48 + 176) * 1024,
    "websockets_of_http2": 50 * (48 + 176 + 12) * 1024,
}
# What inflating is granted: a message is as long as it is, however little of it was sent.
GRANTED_SECONDS_A_BYTE = 0.25 / 1024**3
# The packets that open and close a connection, and the headers of each that carries something.
HANDSHAKE, PACKET = 3 * 60, 40
WORST = 100.0
# Below this a clock tells more of the machine than of who did what.
LEAST_SECONDS = 0.001


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one attack came to."""

    name: str
    spent: Spent
    server_seconds: float
    client_seconds: float
    memory: int
    canaries: int
    lost: int
    wrong: str

    @property
    def memory_factor(self) -> float:
        connections = max(self.spent.connections, 1)
        sent = (self.spent.sent + PACKET * self.spent.writes) / connections
        grown = max(0.0, self.memory / connections - GRANTED.get(self.name, 0))
        return grown / (sent + HANDSHAKE)

    @property
    def processor_factor(self) -> float:
        granted = self.spent.inflated * GRANTED_SECONDS_A_BYTE
        return max(0.0, self.server_seconds - granted) / max(self.client_seconds, LEAST_SECONDS)

    @property
    def is_measured(self) -> bool:
        """One that broke off has spent nobody knows what."""
        return not self.wrong

    @property
    def is_survived(self) -> bool:
        return self.is_measured and not self.lost and max(self.memory_factor, self.processor_factor) <= WORST


@dataclass(kw_only=True)
class Inputs:
    """What came of bytes, and of the canary beside them."""

    tried: int = 0
    complaints: list[str] = field(default_factory=list)
    asked: int = 0
    lost: int = 0


def main() -> None:
    options = read_options()
    runtime = ["--runtime", options.runtime]
    inputs = Inputs() if options.attack else send_inputs(options.odd, runtime)
    costs = list(attack(options.attack or list(ATTACKS), options.scale, runtime))
    wrong = inputs.complaints + [f"{cost.name}: {cost.wrong}" for cost in costs if cost.wrong]
    say("\n" + "\n".join(wrong[:50]))
    asked = inputs.asked + sum(cost.canaries for cost in costs)
    lost = inputs.lost + sum(cost.lost for cost in costs)
    survived = sum(cost.is_survived for cost in costs)
    tried = f"inputs tried: {inputs.tried:,} ({len(inputs.complaints)} judged wrongly)"
    say(
        f"{tried}; faults survived: {survived} of {len(costs)}; requests lost: {lost} of {asked:,};"
        f" worst amplification: {worst([cost for cost in costs if cost.is_measured])}"
    )
    sys.exit(bool(wrong or lost or survived < len(costs)))


def worst(costs: list[Cost]) -> str:
    if not costs:
        return "none was measured"
    memory = max(costs, key=lambda cost: cost.memory_factor)
    processor = max(costs, key=lambda cost: cost.processor_factor)
    return (
        f"memory {memory.memory_factor:.1f} ({memory.name}),"
        f" processor {processor.processor_factor:.2f} ({processor.name})"
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the clients [1]")
    parser.add_argument("--odd", type=int, default=20_000, help="odd requests beside h11 and llhttp [20000]")
    parser.add_argument("--runtime", default="auto", help="of the server [auto]")
    parser.add_argument("attack", nargs="*", help=f"these alone: {', '.join(ATTACKS)}")
    return parser.parse_args()


# --- inputs


def send_inputs(odd: int, runtime: list[str]) -> Inputs:
    """Cases in every cut, disguises, odd requests."""
    found = Inputs()
    with beside(runtime) as (server, canary):
        send_cases(Corpus(server), found)
        for line in test_obfuscations.ALL:
            found.tried += 1
            if test_obfuscations.comes_to(server, line) != test_obfuscations.meant(line):
                found.complaints.append(f"disguised: {line!r}")
        say(f"{len(test_obfuscations.ALL)} disguised codings")
        found.asked, found.lost = judged(canary)
    with quiet(Server("framing_app:app", "--no-access-log", *runtime)) as server:
        for number in range(odd):
            found.tried += 1
            data = odd_request(f"faults-{number}") + FOLLOWER
            ours = read_by_us(server, data, random.Random(number))
            theirs = {judge: read(data) for judge, read in JUDGES.items()}
            found.complaints += [f"odd request faults-{number}: {each}" for each in compare(ours, theirs)]
    say(f"{odd} odd requests, beside h11 and llhttp")
    return found


def send_cases(corpus: Corpus, found: Inputs) -> None:
    cases = [case for row in rows() for case in row.cases]
    for case in cases:
        for pieces in (*whole(case), *all_cuts(case)):
            found.complaints += corpus.complaints(case, pieces)
    found.tried += corpus.inputs
    say(f"{len(cases)} cases, whole and cut: {corpus.inputs} inputs")


# --- attacks


def attack(names: list[str], scale: float, runtime: list[str]) -> Iterator[Cost]:
    say(
        "| attack | connections | sent | server | client | factor | memory | a connection | factor | canary |"
    )
    say("|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        cost = measured(name, max(1, round(SCALE[name] * scale)), runtime)
        say(as_row(cost))
        yield cost


def measured(name: str, count: int, runtime: list[str]) -> Cost:
    wrong = ""
    spent = Spent()
    with beside([*SHORT, *OPTIONS.get(name, []), *runtime]) as (server, canary):
        canary.wait_for(10)
        forget_peak(server)
        memory, theirs, ours = server.memory(), processor_seconds(server), time.thread_time()
        try:
            spent = ATTACKS[name](server, count)
        except Exception as problem:
            wrong = f"{type(problem).__name__}: {problem}"
        theirs, ours = processor_seconds(server) - theirs, time.thread_time() - ours
        memory = max(0, server.memory_peak() - memory)
        canary.wait_for(5)
        asked, lost = judged(canary)
    return Cost(
        name=name,
        spent=spent,
        server_seconds=theirs,
        client_seconds=ours,
        memory=memory,
        canaries=asked,
        lost=lost,
        wrong=wrong,
    )


def as_row(cost: Cost) -> str:
    if not cost.is_measured:
        return f"| {cost.name} | broke off{' |' * 8} {cost.lost} of {cost.canaries} lost |"
    connections = max(cost.spent.connections, 1)
    cells = [
        cost.name,
        f"{cost.spent.connections:,}",
        f"{cost.spent.sent / 1024:,.0f} KiB",
        f"{cost.server_seconds:.2f} s",
        f"{cost.client_seconds:.2f} s",
        f"{cost.processor_factor:.2f}",
        f"{cost.memory / 1024 / 1024:.1f} MiB",
        f"{cost.memory / connections / 1024:,.1f} KiB",
        f"{cost.memory_factor:.1f}",
        f"{cost.lost} of {cost.canaries} lost",
    ]
    return f"| {' | '.join(cells)} |"


# --- the server, and who asks it meanwhile


@contextlib.contextmanager
def beside(options: list[str]) -> Iterator[tuple[Server, Canary]]:
    """A server that is asked all the time."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Folder(Path(folder))
        with (
            quiet(serving(ledger, *options)) as server,
            Canary(server.url, PATHS, ledger=ledger) as canary,
        ):
            yield server, canary


@contextlib.contextmanager
def quiet(server: Server) -> Iterator[Server]:
    """Keep what a server has said out of the table."""
    server.__enter__()
    try:
        yield server
    finally:
        with contextlib.redirect_stdout(io.StringIO()):
            server.__exit__(*sys.exc_info())


def judged(canary: Canary) -> tuple[int, int]:
    """How much the canary has asked, and how much of it was lost."""
    verdict = canary.check()
    return verdict.sent, len(verdict.violations) + verdict.outcomes.get(Outcome.UNREACHED, 0)


def forget_peak(server: Server) -> None:
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")


def processor_seconds(server: Server) -> float:
    # Its clock of nanoseconds, as clock_getcpuclockid makes its number; `stat` counts in hundredths.
    return time.clock_gettime(~server.pid << 3 | 2)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
