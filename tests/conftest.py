"""Fixtures and markers that every folder shares.

Not a place for helpers: those are in `harness`.
"""

from __future__ import annotations

import importlib.util
import os
import signal

import pytest
from harness import HAS_FUSED, UVICORN, uvloop_is_installed

UVLOOP = uvloop_is_installed()
INSTALLED = {"asyncio": True, "uvloop": UVLOOP, "fused": HAS_FUSED, "fused-uvloop": HAS_FUSED and UVLOOP}
LOOPS = [name for name, is_there in INSTALLED.items() if is_there]
if wanted := os.environ.get("BRIDGEHEAD_TEST_LOOPS"):
    # CI takes some of the loops on some Pythons. One that is not there fails, instead of running nothing.
    LOOPS = wanted.split(",")
# Coroutines driven by Rust, on each loop once and in each runtime once: named as more loops.
RUST_LOOPS = [] if UVICORN else [f"{name}-rust" for name in LOOPS if name in {"uvloop", "fused"}]
STEPPERS = os.environ.get("BRIDGEHEAD_TEST_STEPPERS", "asyncio,rust").split(",")
# Each loop in each runtime under each stepper, and as few of these as bring any two of the three together.
COMBINATIONS = LOOPS if UVICORN else [*LOOPS, *(f"{name}-rust" for name in LOOPS)]
# One loop in each runtime, for what takes long and meets the network's clock more than the loop.
FUSED = [name for name in LOOPS if name.startswith("fused")]
RUNTIMES = [*[name for name in LOOPS if name not in FUSED][:1], *FUSED[:1]]
PAIRWISE = ["asyncio", "fused-rust", "uvloop-rust", "fused-uvloop"]
# Where handlers meet tasks; elsewhere a second stepper would test the same again.
MEETS_TASKS = ("anyio_suite", "asgi", "asyncio_fidelity", "bridge", "cpython", "websocket")


# Needs the frameworks, which `make frameworks` installs.
collect_ignore = [] if importlib.util.find_spec("litestar") else ["matrix", "published"]


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Run in a shell's background: what the tests start would ignore it as well.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # run by nohup: likewise
    config.addinivalue_line("markers", "soak: long runs; set BRIDGEHEAD_TEST_SOAK=1 to run them")
    config.addinivalue_line("markers", "browser: drives one; set BRIDGEHEAD_TEST_BROWSER=1 to run them")
    config.addinivalue_line("markers", "databases: starts one; set BRIDGEHEAD_TEST_DATABASES=1 to run them")
    config.addinivalue_line("markers", "combinations: `loop` is every loop, runtime and stepper together")
    config.addinivalue_line("markers", "runtimes: `loop` is one in each runtime")
    config.addinivalue_line("markers", "pairwise: `loop` is a few of those, any two of the three together")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for name, reason in (
        ("soak", "a long run"),
        ("databases", "starts a database"),
        ("browser", "drives a browser"),
    ):
        variable = f"BRIDGEHEAD_TEST_{name.upper()}"
        if os.environ.get(variable) == "1":
            continue
        skip = pytest.mark.skip(reason=f"{reason}: set {variable}=1")
        for item in items:
            if item.get_closest_marker(name):
                item.add_marker(skip)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what a test wants to be known though it has passed: how many of another's tests it ran."""
    lines = {
        str(value)
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "summary"
    }
    for line in sorted(lines):
        terminalreporter.write_line(line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives `loop` its values: by each loop once, and where tasks are met by each stepper."""
    if "loop" not in metafunc.fixturenames:
        return
    definition = metafunc.definition
    loops = LOOPS
    if definition.get_closest_marker("combinations"):
        loops = COMBINATIONS
    elif definition.get_closest_marker("pairwise"):
        loops = [name for name in PAIRWISE if name in COMBINATIONS]
    elif definition.get_closest_marker("runtimes"):
        loops = RUNTIMES
    elif definition.path.parent.name in MEETS_TASKS:
        loops = [*LOOPS, *RUST_LOOPS]
    chosen = [name for name in loops if ("rust" if name.endswith("-rust") else "asyncio") in STEPPERS]
    metafunc.parametrize("loop", chosen, indirect=True, scope="module")


@pytest.fixture(scope="module")
def loop(request: pytest.FixtureRequest) -> str:
    """Each event loop that is installed, in both runtimes, and those with Rust's drive."""
    name: str = request.param
    return name
