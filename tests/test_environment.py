"""Which environments `make` makes anew, and which it leaves alone.

Not the packages: nothing here is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def project(folder: Path) -> Path:
    """What the script reads of the project."""
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def environment(folder: Path, python: Path) -> subprocess.CompletedProcess[str]:
    command = ["bash", ".ci/environment", "made", str(python), "test"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_same_python_by_another_name_leaves_an_environment_as_it_is(tmp_path: Path) -> None:
    """Whoever has activated it finds `python3` there, and `python3.12` elsewhere."""
    folder = project(tmp_path)
    one, other = (tmp_path / name for name in ("python3", "python3.12"))
    for each in (one, other):
        each.symlink_to(BASE)
    (folder / "made" / "bin").mkdir(parents=True)
    (folder / "made" / "bin" / "python").symlink_to(BASE)
    groups = tomllib.loads((folder / "pyproject.toml").read_text())["dependency-groups"]
    constraints = (folder / ".ci" / "constraints.txt").read_text()
    made = f"{one} {' '.join(sys.version.split())}: test\n{groups}\n{constraints}"
    (folder / "made" / "made-from").write_text(made)
    done = environment(folder, other)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "made" / "made-from").read_text() == made


def test_no_environment_is_made_by_the_python_that_it_holds(tmp_path: Path) -> None:
    folder = project(tmp_path)
    venv.create(folder / "made", symlinks=True)
    done = environment(folder, folder / "made" / "bin" / "python")
    assert done.returncode == 1
    assert "which it would be made from: deactivate that, or set PYTHON" in done.stderr
    assert (folder / "made" / "bin" / "python").exists()
