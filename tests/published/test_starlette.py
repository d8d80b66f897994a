"""Starlette's own tests come out the same with a server between their client and their applications.

From the source archive of the version that is installed, which pip fetches; none of its text is here. Run by
`make frameworks`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from harness.server import LOOPS

HERE = Path(__file__).resolve().parent
# How many went over a socket when this was last looked at: fewer is a failure.
COUNT = 453
SECONDS = 300

pytestmark = pytest.mark.timeout(2 * SECONDS)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starlette")
    wanted = f"starlette=={version('starlette')}"
    fetch = [
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        "starlette",
        "--dest",
        str(folder),
        wanted,
    ]
    subprocess.run([sys.executable, "-m", *fetch], check=True, timeout=SECONDS)
    (archive,) = folder.glob("starlette-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.glob("starlette-*") if path.is_dir())
    # The installed one is what is tested.
    (unpacked / "starlette").rename(unpacked / "not-this-one")
    return unpacked


def outcomes(suite: Path, **settings: str) -> dict[str, str]:
    report = suite / "report.xml"
    options = ["--timeout=60", f"--junitxml={report}", "--ignore=tests/middleware/test_opentelemetry.py"]
    # Starlette uses anyio alone; pytest-asyncio beside it only warns, which is an error there.
    without = ("-p", "no:cacheprovider", "-p", "no:asyncio")
    command = ["pytest", "-q", "-p", "live_client", *without, *options, "tests"]
    subprocess.run(
        [sys.executable, "-m", *command],
        cwd=suite,
        env=os.environ | {"PYTHONPATH": str(HERE)} | settings,
        stdout=subprocess.DEVNULL,
        timeout=SECONDS,
        check=False,
    )
    return {
        f"{case.get('classname')}::{case.get('name')}": "".join(
            child.tag + str(child.get("message")) for child in case
        )
        for case in ElementTree.parse(report).iter("testcase")
    }


def test_starlettes_own_tests_pass_over_http(
    loop: str, suite: Path, record_property: Callable[[str, object], None]
) -> None:
    name, runtime = LOOPS[loop]
    plain = outcomes(suite, LIVE_CLIENT="plain")
    ours = outcomes(suite, LIVE_LOOP=name, LIVE_RUNTIME=runtime)
    assert {each: (plain.get(each), came) for each, came in ours.items() if came != plain.get(each)} == {}
    assert len(ours) == len(plain) >= COUNT
    record_property(
        "summary", f"Starlette {version('starlette')}: {len(ours)} of its tests over HTTP on {loop}"
    )
