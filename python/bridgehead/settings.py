"""The settings of one start, from every place that may hold some.

Not the arithmetic of ranks (`sources.py`), and not what is done with settings (`cli.py`).

Invariant: flags outrank the environment, which outranks the configuration file, which outranks defaults; what
an env file adds counts as the environment.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bridgehead.address import TcpAddress
from bridgehead.config import OPTIONS, Config
from bridgehead.config_file import ConfigFile, misnamed_tables, read_config_file
from bridgehead.doubts import doubts
from bridgehead.errors import StartError
from bridgehead.sources import (
    CONFIG_VARIABLE,
    OUR_PREFIX,
    UVICORN_PREFIX,
    Given,
    Resolved,
    environment,
    environment_of_others,
    refuse_plaintext,
    resolve,
)

if TYPE_CHECKING:
    from bridgehead.env_file import Variable

_ENV_FILE = "env_file"
Layer = Mapping[str, Given]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was asked for: the configuration, where each value is from, and what else was read."""

    resolved: Resolved
    layers: Sequence[Layer]
    variables: Mapping[str, "Variable"]  # of the env file, to be set before the application loads
    file: ConfigFile | None
    misnamed: Sequence[str] = ()  # a sentence for each table that is almost ours

    @property
    def config(self) -> Config:
        """The configuration itself."""
        return self.resolved.config

    def with_application(self, folder: Path) -> "Settings":
        """The same, with an application: if none was named, the one that is where applications are."""
        if self.config.app:
            return self
        from bridgehead.discovery import need_application

        return self._with(need_application(folder, self.config.app_dir))

    def with_any_application(self, folder: Path) -> "Settings":
        """The same, for who does not need one."""
        from bridgehead.discovery import find_application

        found = None if self.config.app else find_application(folder, self.config.app_dir)
        return self if found is None else self._with(found)

    def _with(self, application: Given) -> "Settings":
        layers = (*self.layers, {"app": application})
        return replace(self, resolved=resolve(layers), layers=layers)

    def doubts(self) -> Iterator[str]:
        """A sentence for each thing that was set and does nothing, or hardly what was meant."""
        yield from self.misnamed
        yield from doubts(self.resolved)

    def notes(self) -> Iterator[str]:
        """A sentence for each thing that an operator might not know was read."""
        origins = self.resolved.origins
        if self.file is not None:
            yield f"Settings from {self.file.name}."
        if self.config.env_file is not None:
            yield f"Environment from {self.config.env_file}."
        app, port = origins.get("app"), origins.get("port")
        if app is not None and app.folder:  # else a flag or the environment named it
            yield f"Application {app.value} ({app.source})."
        tcp = any(isinstance(each, TcpAddress) for each in self.config.addresses())
        if tcp and port is not None and port.source.split()[-1] == "PORT" and "host" not in origins:
            yield "PORT sets the port only; --host 0.0.0.0 lets other machines connect."


def read_settings(flags: Layer, environ: Mapping[str, str], folder: Path, config: Given | None) -> Settings:
    """Read everything that is read before the application."""
    if config is None and environ.get(CONFIG_VARIABLE):
        config = Given(value=environ[CONFIG_VARIABLE], source=CONFIG_VARIABLE)
    file = read_config_file(config, folder)
    lowest = {} if file is None else file.given
    variables = _variables((flags, *_environment(environ, {}), lowest), environ)
    refuse_plaintext({name: each.value for name, each in variables.items()} | dict(environ))
    layers = (flags, *_environment(environ, variables), lowest)
    misnamed = tuple(misnamed_tables(config, file, folder))
    return Settings(
        resolved=resolve(layers), layers=layers, variables=variables, file=file, misnamed=misnamed
    )


def of_env_file(path: str, environ: Mapping[str, str]) -> Layer:
    """What an env file says of options where no variable of the process itself says something of any."""
    from bridgehead.env_file import read_env_file

    names = [option.also for option in OPTIONS if option.also]
    others = {
        name: value
        for name, value in environ.items()
        if not name.startswith((OUR_PREFIX, UVICORN_PREFIX)) and name not in names
    }
    found: dict[str, Given] = {}
    for layer in _environment({}, read_env_file(path, others)):
        found = {**layer, **found}
    return found


def _environment(environ: Mapping[str, str], added: Mapping[str, "Variable"]) -> Iterator[Layer]:
    """The environment's layers: by prefix, and below each what an env file adds under it."""
    values = {name: each.value for name, each in added.items()}
    for prefix in (OUR_PREFIX, UVICORN_PREFIX, ""):
        yield _under(prefix, environ)
        yield {
            option: replace(given, source=f"{added[given.source].place}: {given.source}")
            for option, given in _under(prefix, values).items()
        }


def _under(prefix: str, environ: Mapping[str, str]) -> dict[str, Given]:
    return environment(environ, prefix) if prefix else environment_of_others(environ)


def _variables(layers: Iterable[Layer], environ: Mapping[str, str]) -> Mapping[str, "Variable"]:
    """What the env file adds, if one is named."""
    path = resolve({_ENV_FILE: layer[_ENV_FILE]} for layer in layers if _ENV_FILE in layer).config.env_file
    if path is None:
        return {}
    from bridgehead.env_file import read_env_file

    variables = read_env_file(path, environ)
    for name in (CONFIG_VARIABLE, OUR_PREFIX + _ENV_FILE.upper(), UVICORN_PREFIX + _ENV_FILE.upper()):
        if name in variables:
            message = f"{variables[name].place}: {name} comes too late, since it says which files to read"
            raise StartError(message, "give it as a flag, or in the environment itself")
    return variables
