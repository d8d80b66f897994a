"""anyio's own tests come out with us as they come out without."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from harness import Server, request
from harness.server import COMPLAINTS

HERE = Path(__file__).resolve().parent
VERSION = ".".join(map(str, sys.version_info[:2]))
SOURCE = HERE.parent.parent / "target" / "anyio" / f"anyio-{importlib.metadata.version('anyio')}"
# By Python and loop: how many tests of each file were run when this was last looked at.
COUNTS: dict[str, dict[str, dict[str, int]]] = json.loads((HERE / "counts.json").read_text())[VERSION]
FILES = list(COUNTS["requests"]["asyncio"])
EAGER = ["eager"] if sys.version_info >= (3, 12) else []

ENVIRONMENT = {"ANYIO_SOURCE": str(SOURCE), "PYTHONPATH": str(HERE.parent / "cpython")}
ATTEMPTS = 3
# All files together take half a minute; two busy cores take what they want.
SECONDS = 400

Outcomes = dict[str, str]

pytestmark = [
    pytest.mark.timeout(3 * SECONDS),
    pytest.mark.skipif(not SOURCE.is_dir(), reason="`make anyio-tests` fetches anyio's source archive"),
]


def run(loop: str, tasks: str, *names: str) -> Outcomes:
    """Without a server; `tasks` are asyncio's or ours."""
    made = subprocess.run(
        [sys.executable, "-m", "anyio_suites.plain", loop, tasks, ",".join(FILES), *names],
        cwd=HERE,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=SECONDS,
    )
    outcomes: Outcomes = json.loads(made.stdout.splitlines()[-1])
    return outcomes


run_once = functools.cache(run)


def compare(
    record_property: Callable[[str, object], None],
    how: str,
    loop: str,
    ours: Outcomes,
    run_again: Callable[[list[str]], Outcomes],
) -> None:
    """What differs is run again, with us and without: some tests look at clocks, or count threads."""
    plain, ours = dict(run_once(loop, "asyncio")), dict(ours)
    for _ in range(ATTEMPTS):
        if not (names := differing(plain, ours)):
            break
        plain |= run(loop, "asyncio", *names)
        ours |= run_again(names)
    assert {name: (plain[name], ours[name]) for name in differing(plain, ours)} == {}
    counts = COUNTS[how].get(loop, {})
    ran = {file: sum(name.startswith(f"tests/{file}::") for name in ours) for file in FILES}
    total = {file: sum(name.startswith(f"tests/{file}::") for name in plain) for file in FILES}
    for file in FILES:
        record_property(
            "summary", f"anyio's {file}: {ran[file]} of {total[file]} tests run as {how} on {loop}"
        )
    assert {file: count for file, count in ran.items() if count < counts[file]} == {}


def differing(plain: Outcomes, ours: Outcomes) -> list[str]:
    """Where the outcome is another, but for what an assertion said: it may name an address."""
    return [name for name in ours if kind(plain.get(name, "not run")) != kind(ours[name])]


def kind(outcome: str) -> str:
    return outcome.partition(":")[0]


@pytest.mark.parametrize("plain_loop", ["asyncio", "uvloop", *EAGER])
def test_tasks_of_ours_pass_what_asyncios_tasks_pass(
    plain_loop: str, record_property: Callable[[str, object], None]
) -> None:
    ours = run_once(plain_loop, "ours")
    compare(record_property, "tasks", plain_loop, ours, lambda names: run(plain_loop, "ours", *names))


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    # anyio's own loops are in debug mode, too. What the tests have logged is theirs.
    env = {**ENVIRONMENT, "PYTHONASYNCIODEBUG": "1"}
    options = ("--loop", loop, "--no-access-log", "--timeout-graceful-shutdown", "1")
    with Server("anyio_suites.inside:app", *options, cwd=HERE, env=env, allow=COMPLAINTS) as server:
        yield server


@pytest.mark.parametrize("eagerly", [False, *(True for _ in EAGER)])
def test_a_request_passes_what_a_task_of_asyncios_passes(
    server: Server, loop: str, eagerly: bool, record_property: Callable[[str, object], None]
) -> None:
    if eagerly and "uvloop" in loop:
        pytest.skip("anyio has eager tasks on asyncio alone")
    plain_loop = "eager" if eagerly else "uvloop" if "uvloop" in loop else "asyncio"

    def run_in_requests(names: list[str]) -> Outcomes:
        words = "&".join(map(quote, [plain_loop, ",".join(FILES), *names]))
        with server.connect(timeout=SECONDS) as client:
            client.send(request(f"/run?{words}", method="POST", body=b"x"))
            outcomes: Outcomes = client.read_response(method="POST").json()
        return {name: outcome for name, outcome in outcomes.items() if outcome not in NOT_RUN}

    compare(record_property, "requests", plain_loop, run_in_requests([]), run_in_requests)


# What `outcomes.py` says of tests that are no coroutine functions, or that are not run by anyio's runner.
NOT_RUN = ("synchronous", "without a loop")
