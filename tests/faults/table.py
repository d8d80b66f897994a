"""The table of faults: what may be done to the server, row by row, and what shows that it survives it.

The rows are data (`rows/*.toml`); nothing here sends anything.
Invariant: a row has cases, or names tests, or says what it waits for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "rows"
ROOT = FOLDER.parent.parent.parent


@dataclass(frozen=True, kw_only=True)
class Case:
    """Bytes, and what they come to."""

    name: str
    send: bytes
    # Bodies of answers, in order; then the refusal, if there is one, with one of these statuses.
    served: tuple[str, ...]
    refused: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fault."""

    number: int
    fault: str
    tests: tuple[str, ...]
    waits_for: str
    cases: tuple[Case, ...]


def rows() -> list[Row]:
    """All of them, by number."""
    tables = [
        table
        for file in sorted(FOLDER.glob("*.toml"))
        for table in tomllib.loads(file.read_text(encoding="utf-8")).get("row", [])
    ]
    return sorted(map(_row, tables), key=lambda row: row.number)


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A bug of a peer's that must not be ours."""

    number: int
    peer: str
    bug: str
    rows: tuple[int, ...]
    tests: tuple[str, ...]
    waits_for: str


def bugs() -> list[Bug]:
    """All of them, by number."""
    tables = tomllib.loads((FOLDER / "peers.toml").read_text(encoding="utf-8"))["bug"]
    return [
        Bug(
            number=table["number"],
            peer=table["peer"],
            bug=table["bug"],
            rows=tuple(table.get("rows", ())),
            tests=tuple(table.get("tests", ())),
            waits_for=table.get("waits_for", ""),
        )
        for table in tables
    ]


def exists(test: str) -> bool:
    """Whether the repository has this test: `file::function`."""
    file, _, name = test.partition("::")
    path = ROOT / file
    word = "fn" if path.suffix == ".rs" else "def"
    return path.is_file() and bool(re.search(rf"\b{word} {name}\(", path.read_text(encoding="utf-8")))


# --- from TOML


def _row(table: dict[str, Any]) -> Row:
    number = table["number"]
    cases = [case for at, each in enumerate(table.get("case", ())) for case in _cases(each, f"{number}.{at}")]
    known = {"number", "fault", "tests", "waits_for", "case"}
    assert not set(table) - known, f"row {number}: {set(table) - known}"
    return Row(
        number=number,
        fault=table["fault"],
        tests=tuple(table.get("tests", ())),
        waits_for=table.get("waits_for", ""),
        cases=tuple(cases),
    )


def _cases(table: dict[str, Any], name: str) -> Iterator[Case]:
    """One, or one for each value."""
    assert not set(table) - {"send", "values", "served", "refused"}, name
    values = table.get("values", [None])
    for number, value in enumerate(values):
        send = _bytes(table["send"])
        yield Case(
            name=name if value is None else f"{name}.{number}",
            send=send if value is None else send.replace(b"{value}", _bytes(value)),
            served=tuple(table.get("served", ())),
            refused=tuple(table.get("refused", ())),
        )


def _bytes(given: Any) -> bytes:
    """A text whose characters are bytes, or parts of one, some of them repeated."""
    if isinstance(given, str):
        return given.encode("latin-1")
    if isinstance(given, dict):
        return _bytes(given["repeat"]) * int(given["times"])
    return b"".join(map(_bytes, given))
