"""Servers of the yardstick that end, and the yardstick itself: how each is told, and that nothing is left."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.workers import wait_gone

LOADTESTS = Path(__file__).resolve().parent.parent.parent / "loadtests"

# Answers so many requests, a connection each, and is gone at the next.
MORTAL = """
import os, signal, socket, sys
port, life = int(sys.argv[1]), int(sys.argv[2])
listener, kept = socket.create_server(("127.0.0.1", port)), []
while True:
    kept.append(listener.accept()[0])
    if kept[-1].recv(4096):
        if not life:
            os.kill(os.getpid(), signal.SIGKILL)
        life -= 1
        kept[-1].sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello")
"""

# The yardstick with two rows or tables that are complete, and another that lasts until somebody ends it.
UNENDING = """
import signal, sys
import compare, servers, special
def unending():
    print("ready", flush=True)
    while True:
        signal.pause()
def measure(row, running, core, options):
    if "--only" in sys.argv and "hello, 1 connection" not in row.workload.name:
        unending()
    burst = compare.results.Burst(cpu=1, rate=1, p50=None, p99=None)
    row.servers["bridgehead"] = compare.Measured(bursts=[burst])
def all_tables(*_):
    yield "### of idle connections"
    with servers.started("bridgehead", "app", 0):
        unending()
compare.check_tools = lambda *_: None
compare.tell_machine = compare.noise = lambda *_: "none"
compare.call_alone = lambda *_: None
compare.measure, special.all_tables = measure, all_tables
servers.COMMANDS["bridgehead"] = ["-c", MORTAL, "{port}", "9"]
compare.main()
"""


@pytest.fixture
def yardstick(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(LOADTESTS)
    names = ("servers", "special", "variants", "lineup", "workloads")
    found = SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    monkeypatch.setattr(found.lineup, "_LAST_BREATH", 30.0)
    return found


def lines_of(name: str, table: str) -> list[str]:
    return [line for line in table.splitlines() if line.startswith(f"| {name} |")]


@pytest.mark.parametrize("table", ["idle", "late", "start_up", "variants"])
def test_a_server_that_dies_in_the_other_tables_says_how(
    table: str, yardstick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = min(os.sched_getaffinity(0))
    lives = {"idle": 3, "late": 0, "start_up": 0, "variants": 0}
    mortal = ["-c", MORTAL, "{port}", str(lives[table])]
    monkeypatch.setitem(yardstick.servers.COMMANDS, "bridgehead", mortal)
    monkeypatch.setitem(yardstick.servers.COMMANDS, "bridgehead again", mortal)
    monkeypatch.setattr(yardstick.variants, "VARIANTS", {})
    monkeypatch.setattr(yardstick.special, "IDLE", 5)
    said = {
        "idle": lambda: yardstick.special.idle(["bridgehead"], [core, core]),
        "late": lambda: yardstick.special.late(["bridgehead"], [core, core], 1),
        "start_up": lambda: yardstick.special.start_up(["bridgehead"], [core, core], 1),
        "variants": lambda: yardstick.variants.measured([core, core], 1),
    }[table]()
    [line] = lines_of("bridgehead", said)
    died = "did not start: died of SIGKILL" if table == "start_up" else "died of SIGKILL ("
    assert line.startswith(f"| bridgehead | refused: {died}"), line


@pytest.mark.parametrize(
    ("problem", "death", "told"),
    [
        (None, "ended with 3", "ended with 3 (after its answers)"),
        (OSError("refused"), "ended with 3", "ended with 3 (refused)"),
        (RuntimeError("wrong answer"), "", "wrong answer"),
    ],
)
def test_what_goes_wrong_is_told_as_the_end_of_the_server_where_it_is(
    problem: Exception | None, death: str, told: str, yardstick: SimpleNamespace
) -> None:
    def asked() -> None:
        with yardstick.lineup.watched(SimpleNamespace(death=lambda _patience: death)):
            if problem:
                raise problem

    with pytest.raises(RuntimeError) as raised:
        asked()
    assert str(raised.value) == told


def descendants(process: int) -> list[int]:
    found = [process]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found[1:]


@pytest.mark.parametrize("words", [["--only", "hello"], []], ids=["in a row", "in another table"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_whoever_ends_the_yardstick_has_what_was_complete_and_no_server_left(
    words: list[str], number: signal.Signals, tmp_path: Path
) -> None:
    file = tmp_path / "tables.md"
    program = f"MORTAL = {MORTAL!r}\n{UNENDING}"
    command = [sys.executable, "-c", program, "--servers", "bridgehead", "--output", str(file), *words]
    with subprocess.Popen(
        command,
        cwd=LOADTESTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "ready\n":
            assert process.poll() is None
        running = descendants(process.pid)
        # By Ctrl-C a terminal tells the whole group, servers as well.
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
        said, errors = process.communicate(timeout=40)
    assert process.returncode == 128 + number, errors
    assert errors.endswith(f"ended by {number.name}: the tables have what was complete by then\n")
    assert "Traceback" not in errors
    assert len(running) >= 2  # a server, and the one that `apps:asks` asks
    assert not [each for each in running if Path(f"/proc/{each}").exists()]
    kept = file.read_text()
    assert said.strip()
    assert kept.strip().endswith(said.strip())
    assert "### hello, 1 connection\n" in kept
    assert ("### of idle connections" in kept) == (not words)
    assert ("### hello, 1024" in kept) == (not words)


# Each with words for it to last until it is ended, and what it says when a server is there to be left.
LASTING = {
    "drain.py": (["--restarts", "1000", "--rate", "20"], "restart 1: "),
    "soak.py": (["--slice", "0.5", "--rate", "20"], "| 0.0 | "),
    "reloads.py": (["--import-seconds", "0.001", "--pause", "0", "--reloads", "1000"], "reload 1: "),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
@pytest.mark.parametrize("script", LASTING)
def test_whoever_ends_a_load_test_leaves_no_server(script: str, number: signal.Signals) -> None:
    words, said = LASTING[script]
    with subprocess.Popen(
        [sys.executable, script, *words],
        cwd=LOADTESTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        while said not in (line := process.stdout.readline()):
            assert line, process.communicate()
        running = descendants(process.pid)
        assert running
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
        rest = process.communicate(timeout=40)[0]
    assert process.returncode == 128 + number, rest
    assert rest.endswith(f"ended by {number.name}: what is printed above is not all\n")
    assert "Traceback" not in rest
    wait_gone(running)  # workers whose parent was killed end in order
