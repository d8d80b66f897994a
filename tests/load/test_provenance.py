"""What the yardstick says of itself: whose figures they are, and what is not in them."""

from __future__ import annotations

import importlib
import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent.parent
LOADTESTS = ROOT / "loadtests"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(LOADTESTS)
    return importlib.import_module("machine")


def test_a_table_names_the_commit_that_its_wheel_is_of(
    machine: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "wheel-of").write_text("v0.1.0-7-gabcdef0-dirty\n")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    elsewhere = SimpleNamespace(origin=str(tmp_path / "_native.so"))
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda _: elsewhere)
    assert machine.tell_machine([]).endswith("\nBridgehead is a wheel of v0.1.0-7-gabcdef0-dirty.")
    (tmp_path / "wheel-of").unlink()
    assert "a commit that nobody noted" in machine.tell_build()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_build_in_the_source_tree_has_the_commit_of_the_tree(
    machine: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for command in (
        ["init"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", "-C", tmp_path, *command], check=True, capture_output=True)
    wanted = subprocess.run(
        ["git", "-C", tmp_path, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True
    )
    monkeypatch.setattr(machine, "FOLDER", tmp_path)
    inside = SimpleNamespace(origin=str(tmp_path.parent / "python" / "bridgehead" / "_native.so"))
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda _: inside)
    assert (
        f"loaded from the source tree, at {wanted.stdout.strip()}: usually a quick build"
        in machine.tell_build()
    )


def pins() -> set[str]:
    lines = (LOADTESTS / "peers.txt").read_text().splitlines()
    written = [Requirement(line) for line in lines if not line.startswith("#")]
    assert all(str(each.specifier).startswith("==") for each in written)
    return {canonicalize_name(each.name) for each in written}


def test_every_version_that_a_table_names_is_pinned(machine: Any) -> None:
    assert {canonicalize_name(name) for name in machine.ALONGSIDE} <= pins()


def test_what_the_peers_need_is_pinned_as_they_are() -> None:
    pinned, needed = pins(), set()
    # Of those that are installed here; in `.venv-peers` that would be all.
    for name in pinned:
        try:
            asked = map(Requirement, importlib.metadata.requires(name) or ())
        except importlib.metadata.PackageNotFoundError:
            continue
        needed |= {
            canonicalize_name(each.name)
            for each in asked
            if not each.marker or each.marker.evaluate({"extra": ""})
        }
    assert needed - {"setuptools"} <= pinned


@pytest.mark.parametrize("is_built", [True, False])
def test_a_table_without_limits_says_why_also_in_its_file(
    is_built: bool, machine: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compare, bare, file = importlib.import_module("compare"), tmp_path / "bare", tmp_path / "tables.md"
    if is_built:
        bare.touch()
    monkeypatch.setattr(compare, "BARE", bare)
    monkeypatch.setattr(compare, "noise", lambda _: "none")
    head = compare.head_of(["bridgehead"], [0, 1], SimpleNamespace(rounds=1, seconds=1))
    told = "hyper alone is not built, so there is no limit, and no aim beside one: `cargo build "
    assert (told in head) == (not is_built)
    assert machine.tell_build() in head
    tables = compare.keep(str(file), head, [], [])
    assert file.read_text() == f"{head}\n{tables}"
