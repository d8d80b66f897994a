"""Holds the house rules that a machine can judge and no linter knows (CONTRIBUTING.md has them in words).

Not a formatter and not a matter of taste: each rule below says what it protects.
Invariant: judges every file that git tracks or would track, and nothing else.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# A file that is longer has two subjects. Tests are not counted.
LONGEST_FILE = 400
# Names that say nothing of what is inside.
VAGUE = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "base", "core"}
# Modules here have the names that uvicorn's have.
NAMED_ELSEWHERE = "python/bridgehead/compat/uvicorn/"
# Where code may say `unsafe`; the compiler denies it elsewhere unless a file lifts the lint.
UNSAFE = "crates/bridgehead-python/src/ffi.rs"
# Another machine has no such path, and another place reaches no such host.
MACHINE = re.compile(
    r"(?<![\w.])/(?:root|work|Users)/\w|/home/(?!user\b|app\b)\w"
    r"|\b(?:pypi|pythonhosted|npmjs|debian)\.org\b|\bcrates\.io\b|\bdocs\.rs\b"
)
# The lock file names the registry by itself; this file names what it looks for.
FREE_OF_MACHINE = {"Cargo.lock", "fuzz/Cargo.lock", ".ci/house.py"}
LATER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    files = sorted({name for name in listed.split("\0") if name and Path(name).is_file()})
    broken = [f"{name}:{line}: {what}" for name in files for line, what in judge(name)]
    for complaint in broken:
        print(complaint)
    if not broken:
        print(f"house: {len(files)} files in order")
    return bool(broken)


def judge(name: str) -> Iterator[tuple[int, str]]:
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if name not in FREE_OF_MACHINE and (found := MACHINE.search(line)):
            yield number, f"a path or host of one machine: {found[0]}"
        if name != ".ci/house.py" and (found := LATER.search(line)):
            yield number, f"{found[0]}: do it, or open an issue"
    if path.suffix not in {".rs", ".py"}:
        return
    if path.stem in VAGUE and not name.startswith(NAMED_ELSEWHERE):
        yield 1, "a name that does not say what is inside"
    if not has_header(path, text):
        yield 1, "does not open with what it is"
    if not in_tests(path) and (length := length_without_tests(lines)) > LONGEST_FILE:
        yield 1, f"{length} lines; split at {LONGEST_FILE}"
    if path.suffix == ".rs" and name != UNSAFE:
        for number, line in enumerate(lines, 1):
            if re.search(r"\b(?:allow|expect)\(.*unsafe_code", line):
                yield number, f"only {UNSAFE} may say unsafe"
    if re.fullmatch(r"crates/[^/]+/src/.+/.+", name):
        yield 1, "no folders in src/"


def has_header(path: Path, text: str) -> bool:
    if path.suffix == ".rs":
        return text.startswith("//! ")
    return not text.strip() or ast.get_docstring(ast.parse(text)) is not None


def in_tests(path: Path) -> bool:
    return "tests" in path.parts


def length_without_tests(lines: list[str]) -> int:
    """Up to the `mod tests` that ends a Rust file; all of a Python file."""
    for number, line in enumerate(lines):
        attributed = line in {"#[cfg(test)]", "#[cfg(all(test, not(loom)))]"}
        if attributed and number + 1 < len(lines) and lines[number + 1].startswith("mod tests {"):
            return number
    return len(lines)


if __name__ == "__main__":
    sys.exit(main())
