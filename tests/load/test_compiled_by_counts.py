"""The scripts that compile the wheel by what its code does: which tool they take, and what they let through.

Not a build: rustc, cargo, maturin and llvm-profdata are scripts here, which say what the real ones say.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

CI = Path(__file__).resolve().parent.parent.parent / ".ci"
RUSTC = "echo host: x86_64-unknown-linux-gnu\necho LLVM version: 99.1.2"
# As soon as something is built, the run is over.
CARGO = "exit 7"
REACHED = 7
# An old one ends with 1 for `--version` alone.
PROFDATA = '[ "$1" = merge ] || exit 1\necho Debian LLVM version {version}.0.6'


def script(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)


def run(name: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(CI / name), "venv"],
        cwd=folder,
        env={**os.environ, "PATH": path, **more},
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        ({}, 3),
        ({"llvm-profdata": 14}, 3),
        ({"llvm-profdata": 100}, 3),
        ({"llvm-profdata": 99}, REACHED),
        ({"llvm-profdata": 14, "llvm-profdata-99": 99}, REACHED),
        ({"llvm-profdata": 99, "llvm-profdata-99": 14}, REACHED),
    ],
)
def test_counting_starts_only_with_the_tool_of_rustcs_own_llvm(
    tools: dict[str, int], code: int, tmp_path: Path
) -> None:
    script(tmp_path / "bin" / "rustc", RUSTC)
    script(tmp_path / "bin" / "cargo", CARGO)
    # Whatever this machine has is behind it on PATH.
    for name, version in {"llvm-profdata": 14, **tools}.items():
        script(tmp_path / "bin" / name, PROFDATA.format(version=version))
    kept = tmp_path / "target" / "pgo" / "profile"
    kept.parent.mkdir(parents=True)
    kept.touch()
    done = run("counts", tmp_path, LLVM_PROFDATA="")
    assert done.returncode == code, done.stderr
    assert kept.exists() == (code == 3)
    if code == 3:
        assert "no llvm-profdata of rustc's LLVM, 99: apt-get install llvm-99; " in done.stderr
        assert f"{tmp_path}/bin/llvm-profdata is of LLVM {tools.get('llvm-profdata', 14)}" in done.stderr


def test_a_tool_that_is_named_goes_first(tmp_path: Path) -> None:
    script(tmp_path / "bin" / "rustc", RUSTC)
    script(tmp_path / "bin" / "cargo", CARGO)
    script(tmp_path / "named", PROFDATA.format(version=99))
    assert run("counts", tmp_path, LLVM_PROFDATA=f"{tmp_path}/named").returncode == REACHED


@pytest.mark.skipif(shutil.which("unzip") is None, reason="needs unzip")
@pytest.mark.parametrize(
    ("built", "code"), [(b"plain", 0), (b"__llvm_prf_cnts" + bytes(10_000_000), 1), (None, 11)]
)
def test_the_wheel_that_was_just_built_is_looked_at_though_others_are_there(
    built: bytes | None, code: int, tmp_path: Path
) -> None:
    new = tmp_path / "new.whl"
    for wheel, library in ((tmp_path / "dist" / "a-0.1.whl", b"plain"), (new, built)):
        wheel.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("bridgehead/__init__.py", "")
            if library is not None:
                archive.writestr("bridgehead/_native.abi.so", library)
    os.utime(tmp_path / "dist" / "a-0.1.whl", (0, 0))
    (tmp_path / "target" / "pgo").mkdir(parents=True)
    script(tmp_path / "bin" / "rustc", RUSTC)
    script(tmp_path / ".ci" / "counts", "")
    script(tmp_path / ".ci" / "remap", "")
    script(tmp_path / "venv" / "bin" / "maturin", "cp new.whl dist/b-0.2.whl")
    script(tmp_path / "venv" / "bin" / "python", "")
    done = run("pgo", tmp_path)
    assert done.returncode == code, done.stderr
    assert ("dist/b-0.2.whl still counts" in done.stderr) == (code == 1)
