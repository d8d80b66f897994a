"""Settings in TOML: `[tool.bridgehead]` of the nearest pyproject.toml, or the file that `--config` names.

Not what a value means (`options.py`) and not its rank (`sources.py`).

Invariant: a key that sets nothing ends the start, and each value is of the type that is due.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bridgehead.config import OPTIONS
from bridgehead.errors import StartError, did_you_mean
from bridgehead.options import Option, Shape
from bridgehead.sources import Given, is_uvicorns
from bridgehead.toml_file import PYPROJECT, Document, Table, mentions, read_toml
from bridgehead.toml_text import as_toml, kind_of, kinds

_TABLE: Table = ("tool", "bridgehead")
_WHOLE_FILE: Table = ()
# Without it no file has the table, however that is written; a project that only depends on us is not parsed.
_SIGN = re.compile(rb"""(?m)^\s*\[*[\s"']*tool["'\s]*(\]|=|\.[\s"']*bridgehead)""")


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
        raise StartError(f"{named.source}: {document.name} has no [tool.bridgehead]", "add the table")
    return _settings(document, _TABLE)


def _nearest(folder: Path) -> ConfigFile | None:
    for each in (folder, *folder.parents):
        if mentions(each / PYPROJECT, folder, _SIGN):
            document = read_toml(each / PYPROJECT, folder)
            if document.at(_TABLE) is not None:
                return _settings(document, _TABLE)
    return None


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
        raise StartError(message) from None
    right = as_toml(meant if option.shape is Shape.LIST else read)
    raise StartError(message, f"write `{option.toml_key} = {right}`")
