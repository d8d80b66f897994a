"""A TOML file, and where in it a key stands.

Not what its keys mean: `config_file.py` and `discovery.py` know some of them.

Invariant: a line that is told is the key's own; where that is not sure, none is told.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridgehead.errors import StartError

PYPROJECT = "pyproject.toml"

Table = tuple[str, ...]

# What looks like a key may be within a text of several lines. The others, and comments, may hold its quotes.
_WHOLE_TEXT = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|"(?:\\.|[^"\\\n])*"|#[^\n]*|''' r"""'''.*?'{3,5}|'[^'\n]*'""", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file that was read, with its text, since a parsed value has no line."""

    file: Path
    name: str
    text: str
    values: Mapping[str, Any]

    def at(self, table: Table) -> Any:
        """What stands under a table's name; None if nothing does."""
        held: Any = self.values
        for name in table:
            held = held.get(name) if isinstance(held, dict) else None
        return held

    def place(self, table: Table, key: str) -> str:
        """`pyproject.toml, line 3: port`, for messages."""
        line = self._line(table, key)
        return f"{self.name}, line {line}: {key}" if line else f"{self.name}: {key}"

    def _line(self, table: Table, key: str) -> int | None:
        of_key = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""")
        current, found = "", []
        for number, line in enumerate(_WHOLE_TEXT.sub(_blank, self.text).splitlines(), 1):
            if header := re.match(r"\s*\[+([^\[\]]+)\]", line):
                current = re.sub(r"[\s\"']", "", header[1])
                if current == ".".join((*table, key)):
                    found.append(number)
            elif current == ".".join(table) and of_key.match(line):
                found.append(number)
        return found[0] if len(found) == 1 else None


def _blank(text: re.Match[str]) -> str:
    return "\n" * text[0].count("\n") or text[0]


def read_toml(file: Path, folder: Path) -> Document:
    """A whole file; messages name it as seen from `folder`."""
    import tomllib  # costs 5 ms, and who has no file needs none of it

    name = shown(file, folder)
    try:
        text = _bytes(file, folder).decode("utf-8-sig")
        return Document(file=file, name=name, text=text, values=tomllib.loads(text))
    except UnicodeDecodeError:
        raise StartError(f"{name} is not UTF-8, as TOML has to be", "save it as UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        said = str(problem)
        line = re.search(r"\(at (line \d+)", said)
        place = f"{name}, {line[1]}" if line else name
        raise StartError(f"{place} is not TOML: {said[:1].lower()}{said[1:]}", "correct it") from None


def mentions(file: Path, folder: Path, sign: re.Pattern[bytes]) -> bool:
    """Whether there is such a file with that in it. Other tools' mistakes are not ours to tell."""
    return os.path.isfile(file) and sign.search(_bytes(file, folder)) is not None


def shown(file: Path, folder: Path) -> str:
    """A file's name for messages, as seen from `folder`."""
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else str(file)


def _bytes(file: Path, folder: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        hint = "name a TOML file that can be read"
        raise StartError(f"{shown(file, folder)} cannot be read: {why}", hint) from None
