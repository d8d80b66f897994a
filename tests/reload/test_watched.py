"""From the options to what is watched: folders, and which side gives way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridgehead.config import Config
from bridgehead.watched import Watched, watched


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("here/web", "here/build", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def of(**options: Any) -> Watched:
    return watched(Config(app="main:app", **options))


def test_by_default_python_files_here(here: Path) -> None:
    found = of()
    assert found.folders == (str(here),)
    assert found.include == ("*.py",)
    assert {".*", "__pycache__"} <= set(found.exclude)


def test_a_default_that_is_given_on_the_other_side_gives_way() -> None:
    found = of(reload_includes=["*.html", ".*"], reload_excludes=["*.py"])
    assert found.include == ("*.html", ".*")
    assert ".*" not in found.exclude
    assert found.exclude[-1] == "*.py"


def test_a_directory_is_no_pattern(here: Path) -> None:
    found = of(reload_includes=["../elsewhere"], reload_excludes=["build", "not_there"])
    assert found.folders == (str(here), str(here.parent / "elsewhere"))
    assert found.left_out == (str(here / "build"),)
    assert "build" not in found.exclude
    assert found.exclude[-1] == "not_there"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"app_dir": "web"}, ["here"]),
        ({"app_dir": "../elsewhere"}, ["here", "elsewhere"]),
        ({"app": "../elsewhere/main.py"}, ["here", "elsewhere"]),
        ({"app": "web/main.py:app"}, ["here"]),
        ({"app": "main.py", "app_dir": "../elsewhere"}, ["here", "elsewhere"]),
        ({"app_dir": "../elsewhere", "reload_dirs": ["web"]}, ["here/web"]),
        ({"reload_dirs": ["web", "web", "."]}, ["here/web", "here"]),
    ],
)
def test_the_application_is_watched_where_it_is(
    here: Path, options: dict[str, Any], expected: list[str]
) -> None:
    found = watched(Config(**{"app": "main:app"} | options))
    assert found.folders == tuple(str(here.parent / name) for name in expected)


def test_links_are_resolved_as_the_system_names_files_without_them(here: Path) -> None:
    (here / "linked").symlink_to(here.parent / "elsewhere")
    assert of(reload_dirs=["linked"]).folders == (str(here.parent / "elsewhere"),)


def test_the_env_file_counts(here: Path) -> None:
    assert of(env_file=".env").include == ("*.py", str(here / ".env"))


def test_directories_in_the_environment_are_parted_as_paths_are() -> None:
    assert Config(reload_dirs="a b:c").reload_dirs == ("a b", "c")  # type: ignore[arg-type]
    assert Config(reload_includes="*.a *.b").reload_includes == ("*.a", "*.b")  # type: ignore[arg-type]
