"""Settings in TOML: `[tool.bridgehead]` of the nearest pyproject.toml, or the file that `--config` names.

Not what a value means (`options.py`) and not its rank (`sources.py`).

Invariant: a key that sets nothing ends the start, and each value is of the type that is due.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bridgehead.config import OPTIONS
from bridgehead.errors import StartError, did_you_mean
from bridgehead.options import Option, Shape
from bridgehead.sources import Given, is_uvicorns
from bridgehead.toml_file import PYPROJECT, Document, Table, mentions, read_toml, shown
from bridgehead.toml_text import as_toml, kind_of, kinds

_OURS = "bridgehead"
_TABLE: Table = ("tool", _OURS)
_WHOLE_FILE: Table = ()
# Without it no file has the table, however that is written; a project that only depends on us is not parsed.
_SIGN = re.compile(rb"""(?m)^\s*\[*[\s"']*tool["'\s]*(\]|=|\.[\s"']*bridgehead)""")
# Heads of tables whose names might be ours with a slip of the pen: nearly all other tools' are not.
_NEAR_SIGN = re.compile(rb"""(?mi)^\s*\[+[\s"']*tool["'\s]*\.[\s"']*(br[\w-]+|b[\w-]*h[\w-]*d[\w-]*)""")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """The settings of one file, and its name for messages."""

    name: str
    given: Mapping[str, Given]


def read_config_file(named: Given | None, folder: Path) -> ConfigFile | None:
    """What the named file sets, else the nearest pyproject.toml with our table, from `folder` upwards."""
    if named is None:
        return _nearest(folder)
    if not named.value:
        raise StartError(f"{named.source} names no file", "name a TOML file; /dev/null for none")
    file = Path(folder, str(named.value))
    try:
        document = read_toml(file, folder)
    except StartError as problem:
        raise problem.within(named.source) from None
    if file.name != PYPROJECT and "tool" not in document.values:
        return _settings(document, _WHOLE_FILE)
    if document.at(_TABLE) is None:
        tools = document.values.get("tool")
        near = next(filter(_is_near, tools if isinstance(tools, dict) else ()), None)
        hint = "add the table" if near is None else f"did you mean [tool.bridgehead] by [tool.{near}]?"
        raise StartError(f"{named.source}: {document.name} has no [tool.bridgehead]", hint)
    if file.name != PYPROJECT:
        _refuse_what_is_beside_the_table(document)
    return _settings(document, _TABLE)


def _nearest(folder: Path) -> ConfigFile | None:
    for each in (folder, *folder.parents):
        if mentions(each / PYPROJECT, folder, _SIGN):
            document = read_toml(each / PYPROJECT, folder)
            if document.at(_TABLE) is not None:
                return _settings(document, _TABLE)
    return None


def misnamed_tables(named: Given | None, found: ConfigFile | None, folder: Path) -> Iterator[str]:
    """A sentence for each table that is almost ours in a pyproject.toml that was looked at."""
    if named is not None:
        return
    for each in (folder, *folder.parents):
        file = each / PYPROJECT
        if mentions(file, folder, _NEAR_SIGN):
            name, lines = shown(file, folder), file.read_bytes().splitlines()
            tables = [match[1].decode() if (match := _NEAR_SIGN.match(line)) else "" for line in lines]
            for table in filter(_is_near, dict.fromkeys(tables)):
                place = f"{name}, line {tables.index(table) + 1}"
                yield f"{place}: [tool.{table}] sets nothing; did you mean [tool.bridgehead]?"
        if found is not None and found.name == shown(file, folder):
            return


def _is_near(table: str) -> bool:
    """Whether our table was meant. `bridgehead-…` may be a tool beside us."""
    if table == _OURS or table.startswith((f"{_OURS}-", f"{_OURS}_")):
        return False
    import difflib  # costs 5 ms, and only mistakes need it

    return bool(difflib.get_close_matches(table.lower(), [_OURS], cutoff=0.8))


def _settings(document: Document, table: Table) -> ConfigFile:
    """The options that a table sets."""
    held = document.at(table)
    if not isinstance(held, dict):
        place = document.place(table[:-1], table[-1])
        raise StartError(
            f"{place}: {as_toml(held)} is {kind_of(held)}; a table is due", "write [tool.bridgehead]"
        )
    options = {option.name: option for option in OPTIONS}
    folder = os.path.abspath(document.file.parent)
    given: dict[str, Given] = {}
    for key, value in held.items():
        place = document.place(table, key)
        option = options.get(key.replace("-", "_"))
        if option is None:
            raise _unknown(place, key)
        if option.name in given:
            raise StartError(f"{place}: `{option.toml_key}` is there twice", "keep one of them")
        _judge_type(place, option, value)
        given[option.name] = Given(value=value, source=place, folder=folder)
    return ConfigFile(name=document.name, given=given)


def _refuse_what_is_beside_the_table(document: Document) -> None:
    """A file of ours may have its keys in either place. In both, those at its top would set nothing."""
    names = {option.name for option in OPTIONS}
    for key, value in document.values.items():
        if key.replace("-", "_") in names or not isinstance(value, dict):
            message = f"{document.place(_WHOLE_FILE, key)} sets nothing: the file has a [tool.bridgehead]"
            raise StartError(message, "move it below [tool.bridgehead], or leave that line out of the file")


def _unknown(place: str, key: str) -> StartError:
    if is_uvicorns(key):
        message = f"{place} is a setting of uvicorn's that is not there yet"
        return StartError(message, "leave it out of the file")
    otherwise = "leave it out; `serve --print-config --toml` prints every setting there is"
    hint = did_you_mean(key, (option.toml_key for option in OPTIONS), otherwise=otherwise)
    return StartError(f"{place} is not a setting", hint)


def _judge_type(place: str, option: Option, value: object) -> None:
    """A text is not a number in TOML: refuse it, and show how it is written."""
    if not option.types or type(value) in option.types:
        return
    due = " or ".join(kinds(option.types))
    message = f"{place}: {as_toml(value)} is {kind_of(value)}; {due} is due"
    meant = [value] if option.shape is Shape.LIST else value
    try:
        read = option.read(meant)
    except StartError:
        raise StartError(message, f"this is for: {option.help}") from None
    right = as_toml(meant if option.shape is Shape.LIST else read)
    raise StartError(message, f"write `{option.toml_key} = {right}`")
