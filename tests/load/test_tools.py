"""What `.ci/system` installs: what a build misses, and what tests of the yardstick are skipped without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
THERE = ("cargo", "cc")
LOADS = {"wrk": "wrk", "h2load": "nghttp2-client"}


def system(
    folder: Path, *, user: int, apt: int, there: tuple[str, ...] = THERE
) -> tuple[int, list[str], str]:
    """Its exit code, what it has installed, and what it said, where apt ends so."""
    log = folder / "installed"
    log.touch()
    scripts = dict.fromkeys(there, "exit 0")
    scripts["id"] = f"echo {user}"
    scripts["apt-get"] = f'[ "$1" != install ] || {{ echo "$*" >>"{log}"; exit {apt}; }}'
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    command = ["/bin/bash", str(ROOT / ".ci" / "system"), sys.executable]
    done = subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True, check=False)
    return done.returncode, log.read_text().split(), done.stderr


@pytest.mark.parametrize("lacking", ["wrk", "h2load"])
def test_what_loads_a_server_is_installed_where_it_is_missing(lacking: str, tmp_path: Path) -> None:
    others = tuple(each for each in LOADS if each != lacking)
    code, installed, said = system(tmp_path, user=0, apt=0, there=(*THERE, *others))
    assert code == 0, said
    assert LOADS[lacking] in installed
    assert not {LOADS[each] for each in others} & set(installed)


@pytest.mark.parametrize(("user", "apt"), [(1000, 0), (0, 100)], ids=["not root", "apt fails"])
def test_what_tests_are_skipped_without_is_told_and_no_reason_to_fail(
    user: int, apt: int, tmp_path: Path
) -> None:
    code, _, said = system(tmp_path, user=user, apt=apt)
    assert "will be skipped; on Debian and Ubuntu: apt-get install wrk nghttp2-client" in said
    assert code == 0


def test_a_linker_that_cannot_be_installed_is_a_reason_to_fail(tmp_path: Path) -> None:
    code, _, said = system(tmp_path, user=1000, apt=0, there=("cargo", *LOADS))
    assert (code, "missing: a C linker (cc)" in said) == (1, True)
