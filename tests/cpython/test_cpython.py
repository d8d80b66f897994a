"""CPython's own tests of asyncio come out with us as they come out without."""

from __future__ import annotations

import concurrent.futures
import functools
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Client, Server, request
from harness.server import COMPLAINTS

HERE = Path(__file__).resolve().parent
VERSION = ".".join(map(str, sys.version_info[:2]))
# How many tests of each file were run when this was last looked at.
COUNTS: dict[str, int] = json.loads((HERE / "counts.json").read_text())[VERSION]

# Synchronous: they turn a loop of their own, with our task or future in the place of the one written in C.
REPLACED = [name for name in ("test_tasks", "test_eager_task_factory", "test_futures") if name in COUNTS]
# Asynchronous: each test is a request.
REQUESTED = [name for name in COUNTS if name not in REPLACED]
# One test at a time: one file sets the loop's exception handler, the other has timers race with tasks.
ALONE = {"test_futures2", "test_queues"}
# From 3.14 on these look for the test in the coroutine that its task was made of, which is the application.
OUTERMOST = "test_exception_refcycles" if sys.version_info >= (3, 14) else None
CLIENTS = 8
ATTEMPTS = 3
# A file takes one to ten seconds, much of it in sleeps; two busy cores take what they want.
SECONDS = 200

Outcomes = dict[str, str]

pytestmark = [
    pytest.mark.timeout(2 * SECONDS),
    pytest.mark.skipif(
        importlib.util.find_spec("test.test_asyncio") is None, reason="this Python came without its own tests"
    ),
]


@functools.cache
def outcomes_of(*command: str) -> Outcomes:
    made = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=SECONDS,
    )
    found: Outcomes = json.loads(made.stdout)
    return found


def kinds(outcomes: Outcomes) -> Outcomes:
    """Without what an assertion said."""
    return {name: outcome.partition(":")[0] for name, outcome in outcomes.items()}


@pytest.mark.parametrize("module", REPLACED)
def test_tasks_and_futures_of_ours_pass_what_those_in_c_pass(
    module: str, record_property: Callable[[str, object], None]
) -> None:
    plain = outcomes_of("cpython_suites.replaced", module, "plain")
    ours = outcomes_of("cpython_suites.replaced", module, "ours")
    assert ours == plain
    passed = list(plain.values()).count("passed")
    what = "future" if module == "test_futures" else "task"
    record_property("summary", f"{module}: {passed} of {len(plain)} tests passed as our {what}")
    assert passed >= COUNTS[module]


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    # unittest's own loops are in debug mode, too. What the tests have logged is theirs.
    env = {"PYTHONASYNCIODEBUG": "1"}
    options = ("--loop", loop, "--timeout-graceful-shutdown", "1")
    with Server("cpython_suites.inside:app", *options, cwd=HERE, env=env, allow=COMPLAINTS) as server:
        yield server


@pytest.mark.parametrize("module", REQUESTED)
def test_a_request_passes_what_a_task_of_asyncios_passes(
    server: Server, loop: str, module: str, record_property: Callable[[str, object], None]
) -> None:
    plain_loop = "uvloop" if "uvloop" in loop else "asyncio"
    everything = outcomes_of("cpython_suites.plain", plain_loop, module)
    plain = kinds({name: outcome for name, outcome in everything.items() if is_run(name, outcome)})
    ours = run_as_requests(server, module, list(plain))
    for name in differing(plain, ours):
        # Some look at clocks, and a machine that is busy with the others makes those fail: now alone.
        for _ in range(ATTEMPTS):
            plain |= kinds(outcomes_of.__wrapped__("cpython_suites.plain", plain_loop, module, name))
            ours |= run_as_requests(server, module, [name])
            if not differing(plain, ours, name):
                break
    assert {name: (plain[name], ours[name]) for name in differing(plain, ours)} == {}
    record_property("summary", f"{module}: {len(plain)} of {len(everything)} tests run as requests on {loop}")
    assert len(plain) >= COUNTS[module]


def is_run(name: str, outcome: str) -> bool:
    return outcome != "synchronous" and not (OUTERMOST and OUTERMOST in name)


def differing(plain: Outcomes, ours: Outcomes, *names: str) -> list[str]:
    """Where the outcome is another, but for what an assertion said: it may name an address."""
    ours = kinds(ours)
    return [name for name in names or plain if plain[name] != ours[name]]


def run_as_requests(server: Server, module: str, names: list[str]) -> Outcomes:
    local = threading.local()

    def run(name: str) -> str:
        if not hasattr(local, "client"):
            local.client = server.connect()
        client: Client = local.client
        client.send(request(f"/run/{module}?{name}", method="POST", body=b"x"))
        try:
            return client.read_response().body.decode()
        except TimeoutError:
            del local.client
            return "hung"

    with concurrent.futures.ThreadPoolExecutor(1 if module in ALONE else CLIENTS) as clients:
        return dict(zip(names, clients.map(run, names), strict=True))
