"""The settings of one start on paper: each with its place, or as a file that says the same again.

Not a source of anything, and nothing is loaded for it.

Invariant: what `as_file` prints, read by `--config` from anywhere, makes the same configuration, but for what
an env file says otherwise: that outranks every file, and `overruled` tells of it.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from bridgehead import open_files
from bridgehead.config import OPTIONS, Config
from bridgehead.discovery import looked_for
from bridgehead.errors import StartError
from bridgehead.formatters import is_terminal
from bridgehead.options import Option
from bridgehead.patience import Patience
from bridgehead.settings import Settings, of_env_file
from bridgehead.sources import Given
from bridgehead.toml_text import as_toml
from bridgehead.uvicorn_defaults import defaults
from bridgehead.watched import usual_folders

_APP = "app"
_RELOAD_DIRS = "reload_dirs"
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
    outranked = _overruled(settings)
    lines = [
        (_remark(outranked[option.name]) if option.name in outranked else "") + _line(option, value)
        for option, value in _to_write(settings)
    ]
    return "".join([_HEAD, *lines])


def _remark(given: Given) -> str:
    return f"# the next line does nothing: {given.source} outranks it\n"


def overruled(settings: Settings) -> Iterator[str]:
    """A sentence for each setting that the printed file cannot reproduce, as it names an env file too."""
    flags = {option.name: option.flags for option in OPTIONS}
    for name, given in _overruled(settings).items():
        rank = f"{given.source} outranks the printed file, which has another value"
        yield f"{rank}: give {flags[name]} beside it, or take that line out."


def _overruled(settings: Settings) -> Mapping[str, Given]:
    """What the env file says that a flag or a variable has outranked; neither will be there."""
    if settings.config.env_file is None:
        return {}
    said = of_env_file(settings.config.env_file, os.environ)
    return {
        option.name: said[option.name]
        for option in OPTIONS
        if option.name in said and not _is_in_force(settings, option, said[option.name])
    }


def _is_in_force(settings: Settings, option: Option, given: Given) -> bool:
    taken, value = settings.resolved.origins.get(option.name), getattr(settings.config, option.name)
    if taken is None:
        return False  # an address that another kind of address has replaced
    if option.anchor and value != option.anchor(value, os.getcwd()):
        return False  # there it is relative to where the server is started
    with suppress(StartError):
        return taken.source == given.source or option.read(given.value) == value
    return False


def _line(option: Option, value: object) -> str:
    if option.secret and value is not None:
        return f"# {option.toml_key} is a secret, and is not written down\n"
    if option.name == _APP and not value:
        return f"# {_APP} is not set: what a start in its folder finds is served\n"
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
        if option.name == _RELOAD_DIRS and config.reload:
            value = value or tuple(usual_folders(config))  # what they are depends on where it is started
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
    if not is_unset:
        return as_toml(_flat(value))
    known = _in_force(settings.config, option.name)
    return f"{known} ({option.unset})" if known else f"({option.unset})"


def _in_force(config: Config, name: str) -> str:
    """What a start from here would take for a setting that is not set, where that can be known."""
    match name:
        case "drain_delay":
            return "0" if config.reload else as_toml(Patience.of(config, os.environ).delay)
        case "limit_connections":
            return str(open_files.connections_that_fit(open_files.most_files()))
        case "limit_static":
            return str(open_files.static_files_that_fit(open_files.most_files()))
        case "use_colors":
            shown, lines = as_toml(is_terminal(sys.stderr)), as_toml(is_terminal(sys.stdout))
            return shown if shown == lines else f"stderr: {shown}, stdout: {lines}"
    return ""


def _not_found(app_dir: str) -> str:
    return f"there is no {looked_for(Path.cwd(), app_dir)}"


def _origin(settings: Settings, option: Option) -> str:
    origins, config = settings.resolved.origins, settings.config
    if option.name == _APP and not config.app:
        return _not_found(config.app_dir)
    if option.name in origins:
        return origins[option.name].source
    if option.name in defaults(config.compat):
        return f"{origins['compat'].source} {config.compat}"
    return "default"
