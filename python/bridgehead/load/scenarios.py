"""Kinds of requests from a TOML file, each with its weight.

Not their templates and header names: Rust judges those, since it fills them in.

Invariant: a key that nothing reads ends the start, and the message says in which scenario it is.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bridgehead.errors import StartError, did_you_mean
from bridgehead.load.plan import Scenario, Upload, read_file
from bridgehead.options import Reader, switch, text, whole
from bridgehead.quantities import seconds, size
from bridgehead.toml_file import Document, read_toml

_TABLES = ("scenario",)


def read_scenarios(file: Path, path: str) -> tuple[Scenario, ...]:
    """The scenarios of a file; `path` is for those that have none."""
    document = read_toml(file.absolute(), Path.cwd())
    _known(document.values, _TABLES, document.name)
    tables = document.values.get("scenario")
    if not isinstance(tables, list) or not tables or not all(isinstance(each, dict) for each in tables):
        raise StartError(f"{document.name} has no scenario", "write [[scenario]] and its path below")
    return tuple(_scenario(document, number, table, path) for number, table in enumerate(tables, 1))


def _scenario(document: Document, number: int, table: Mapping[str, Any], path: str) -> Scenario:
    table = _dashed(table)
    name = table.get("name", f"{table.get('method', 'GET')} {table.get('path', path)}")
    place = f"{document.name}, scenario {number} ({name})"
    _known(table, _KEYS, place)
    values: dict[str, Any] = {"path": path, "name": name}
    for key, value in table.items():
        try:
            values |= _KEYS[key](value, document.file.parent)
        except StartError as problem:
            raise problem.within(f"{place}: {key}") from None
    bodies = [key for key in ("body", "body-file", "upload") if key in table]
    if len(bodies) > 1:
        raise StartError(f"{place}: {' and '.join(bodies)} are two bodies", "give one of them")
    return Scenario(**values)


def _of(name: str, read: Reader[Any]) -> Callable[[Any, Path], dict[str, Any]]:
    return lambda value, _: {name: read(value)}


def _think(value: object) -> tuple[float, float]:
    least, most = value if isinstance(value, list) and len(value) == 2 else (value, value)
    bounds = (seconds(least), seconds(most))
    if bounds[0] > bounds[1]:
        raise StartError(f"{value!r} ends before it begins", 'write ["50ms", "150ms"]')
    return bounds


def _headers(value: object) -> tuple[tuple[str, str], ...]:
    pairs = _table(value, "{ accept = 'text/html' }")
    several = (
        (name, each) for name, held in pairs.items() for each in (held if isinstance(held, list) else [held])
    )
    return tuple((name, text(each)) for name, each in several)


def _upload(value: object) -> Upload:
    table = _dashed(_table(value, "{ size = '10M' }"))
    _known(table, ("size", "chunk", "every", "declared"), "upload")
    if "size" not in table:
        raise StartError("an upload has a size", "write { size = '10M' }")
    return Upload(
        size=size(table["size"]),
        chunk=size(table.get("chunk", "64k")),
        every=seconds(table.get("every", 0)),
        declared=switch(table.get("declared", False)),
    )


def _expect(value: object) -> dict[str, Any]:
    table = _dashed(_table(value, "{ status = 200 }"))
    _known(table, ("status", "contains", "headers"), "expect")
    expected: dict[str, Any] = {}
    if "status" in table:
        statuses = table["status"] if isinstance(table["status"], list) else [table["status"]]
        if not statuses:
            raise StartError(
                "no status is expected, so none would be right", "leave it out for any below 500"
            )
        expected["expect_status"] = tuple(map(whole(100, 999), statuses))
    if "contains" in table:
        expected["expect_body"] = text(table["contains"]).encode()
    if "headers" in table:
        expected["expect_headers"] = _headers(table["headers"])
    return expected


_KEYS: dict[str, Callable[[Any, Path], dict[str, Any]]] = {
    "name": _of("name", text),
    "weight": _of("weight", whole(0, 2**31 - 1)),
    "method": _of("method", text),
    "path": _of("path", text),
    "headers": _of("headers", _headers),
    "body": _of("body", text),
    "body-file": lambda value, folder: {"body": read_file(folder / text(value))},
    "upload": _of("upload", _upload),
    "think": _of("think", _think),
    "expect": lambda value, _: _expect(value),
}


def _table(value: object, form: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise StartError(f"{value!r} is not a table", f"write {form}")
    return value


def _dashed(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "-"): value for key, value in table.items()}


def _known(table: Mapping[str, Any], keys: Any, place: str) -> None:
    for key in table:
        if key not in keys:
            hint = did_you_mean(key, keys, otherwise=f"there are {', '.join(keys)}")
            raise StartError(f"{place}: there is no key {key!r}", hint)
