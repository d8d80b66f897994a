"""The settings of one start on paper: each with its place, or as a file that says the same again.

Not a source of anything, and nothing is loaded for it.

Invariant: what `as_file` prints, read by `--config` from anywhere, makes the same configuration.
"""

import os
from collections.abc import Iterator

from bridgehead.config import OPTIONS
from bridgehead.options import Option
from bridgehead.settings import Settings
from bridgehead.toml_text import as_toml
from bridgehead.uvicorn_defaults import defaults

_HEAD = "# Printed by `serve --print-config --toml`; `serve --config FILE` reads it.\n"


def as_table(settings: Settings) -> str:
    """A line for each setting: its key, its value as TOML has it, and where it is from."""
    lines = [(option.toml_key, _shown(settings, option), _origin(settings, option)) for option in OPTIONS]
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    return "".join(f"{key:{widths[0]}}  {value:{widths[1]}}  {origin}\n" for key, value, origin in lines)


def as_file(settings: Settings) -> str:
    """All that can be set, defaults as well, so that a later version's defaults change nothing.

    TOML has no word for none: what is not set has a comment that says what happens then.
    """
    return "".join([_HEAD, *(_line(option, value) for option, value in _to_write(settings))])


def _line(option: Option, value: object) -> str:
    if option.secret and value is not None:
        return f"# {option.toml_key} is a secret, and is not written down\n"
    if value is None:
        return f"# {option.toml_key} is not set: {option.unset}\n"
    return f"{option.toml_key} = {as_toml(value)}\n"


def _to_write(settings: Settings) -> Iterator[tuple[Option, object]]:
    config, here = settings.config, os.getcwd()
    # `bind` stands instead of the other two, so a file may not have both.
    unsaid = {"host", "port"} if config.bind else {"bind"}
    if config.uds is not None or config.fd is not None:  # heard before those
        unsaid = {"host", "port", "bind"}
    for option in OPTIONS:
        value = getattr(config, option.name)
        if option.name in unsaid:
            continue
        # Paths are written whole, for the file may be put anywhere.
        yield option, _flat(option.anchor(value, here) if option.anchor and value is not None else value)


def _flat(value: object) -> object:
    """Headers as they are written on the command line."""
    if isinstance(value, tuple) and all(isinstance(each, tuple) for each in value):
        return [b": ".join(each) for each in value]
    return value


def _shown(settings: Settings, option: Option) -> str:
    value = getattr(settings.config, option.name)
    if option.secret and value is not None:
        return "(a secret)"
    is_unset = value is None or (value == option.default and value in ("", ()))
    return f"({option.unset})" if is_unset else as_toml(_flat(value))


def _origin(settings: Settings, option: Option) -> str:
    origins, config = settings.resolved.origins, settings.config
    if option.name in origins:
        return origins[option.name].source
    if option.name in defaults(config.compat):
        return f"{origins['compat'].source} {config.compat}"
    return "default"
