"""`--log-config`: a file, or a dictionary, that says where records go.

Everything in it is `logging.config`'s. Only the formatters of `uvicorn.logging` are looked up here, so that a
configuration which names them works where uvicorn is not installed.

Invariant: a configuration that cannot be used ends the start, and says which file and why.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bridgehead.errors import StartError

if TYPE_CHECKING:
    from configparser import RawConfigParser

# What only a configuration needs is imported when there is one: `serve --help` reads this file too.

_KNOWN = ("ColourizedFormatter", "DefaultFormatter", "AccessFormatter")
_THEIRS = {f"uvicorn.logging.{name}": f"bridgehead.formatters.{name}" for name in _KNOWN}
_KINDS = (".ini", ".cfg", ".conf", ".json", ".yaml", ".yml", ".toml")


def read(value: object) -> Any:
    """An option's reader: a path, what a file holds, or None for a `logging` that is not to be touched."""
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if hasattr(value, "readline") or _is_parser(value):
        return _parsed(value)
    raise StartError(
        f"{value!r} is not a log configuration", f"name a file ({', '.join(_KINDS)}), or give a dictionary"
    )


def _is_parser(value: object) -> bool:
    from configparser import RawConfigParser

    return isinstance(value, RawConfigParser)


def _parsed(value: Any) -> Any:
    """What an open file holds, read while it is open."""
    from configparser import ConfigParser

    if not hasattr(value, "readline"):
        return value
    parser = ConfigParser()
    parser.read_file(value)
    return parser


def apply(configuration: Any, *, use_colors: bool | None) -> None:
    """Configure `logging`."""
    import logging.config

    source = configuration if isinstance(configuration, str) else "the log configuration"
    loaded = _load(configuration) if isinstance(configuration, str) else configuration
    try:
        if _is_parser(loaded):
            logging.config.fileConfig(_ours_in_ini(loaded), disable_existing_loggers=False)
        elif isinstance(loaded, dict):
            logging.config.dictConfig(_ours_in_dict(loaded, use_colors))
        else:
            raise StartError(f"{source} holds no table at its top", "see logging.config's dictionary schema")
    except StartError:
        raise
    except Exception as error:  # whatever the classes that it names raise
        why = ": ".join(str(each) for each in (error, error.__cause__) if each)
        raise StartError(
            f"{source} cannot be used: {why}", "see logging.config in Python's library"
        ) from error


def _load(path: str) -> Any:
    import json
    import tomllib

    kind = os.path.splitext(path)[1].lower()
    loaders: dict[str, Callable[[str], Any]] = {
        ".json": json.loads,
        ".toml": tomllib.loads,
        ".yaml": _load_yaml,
        ".yml": _load_yaml,
    }
    try:
        with open(path, encoding="utf-8") as file:
            return loaders.get(kind, _load_ini)(file.read())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise StartError(f"{path} cannot be read: {why}", "check the path of --log-config") from None
    except ValueError as error:
        hint = f"a file is what its name says: {', '.join(_KINDS)}"
        raise StartError(f"{path} is no valid log configuration: {error}", hint) from None


def _load_ini(text: str) -> "RawConfigParser":
    from configparser import ConfigParser, Error

    parser = ConfigParser()  # what `fileConfig` would make of a file by itself
    try:
        parser.read_string(text)
    except Error as error:
        raise ValueError(error) from None
    return parser


def _load_yaml(text: str) -> Any:
    from importlib import import_module

    try:
        yaml = import_module("yaml")
    except ImportError:
        hint = "try `pip install pyyaml`, or write it as .json, .toml or .ini"
        raise StartError("a log configuration in YAML needs PyYAML, which is not installed", hint) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(error) from None


def _ours_in_dict(configuration: dict[str, Any], use_colors: bool | None) -> dict[str, Any]:
    """A copy that names our formatters; `--use-colors` reaches them, as in uvicorn."""
    formatters = configuration.get("formatters")
    if not isinstance(formatters, dict):
        return configuration
    renamed: dict[str, Any] = {}
    for name, formatter in formatters.items():
        if isinstance(formatter, dict):
            formatter = {key: _ours(each) for key, each in formatter.items()}
            if use_colors is not None and formatter.get("()") in _THEIRS.values():
                formatter["use_colors"] = use_colors
        renamed[name] = formatter
    return {**configuration, "formatters": renamed}


def _ours(value: Any) -> Any:
    return _THEIRS.get(value, value) if isinstance(value, str) else value


def _ours_in_ini(parser: "RawConfigParser") -> "RawConfigParser":
    for name in parser.sections():
        if name.startswith("formatter_") and parser.has_option(name, "class"):
            parser.set(name, "class", _ours(parser.get(name, "class", raw=True)))
    return parser
