"""Options by their names in `bridgehead.Config`, as the words of the command line.

Not their values' judge: the command reads them as it reads yours.

Invariant: `None` is the default, and an option that does not exist is a `TypeError` that names the nearest.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bridgehead.config import OPTIONS
from bridgehead.errors import did_you_mean
from bridgehead.options import Option, Shape

_KNOWN = {option.name: option for option in OPTIONS if option.shape is not Shape.TARGET}
# The server tells its address at `info`.
_SILENT = ("warning", "error", "critical")


def flags_of(options: Mapping[str, Any]) -> list[str]:
    """The words."""
    words: list[str] = []
    for name, value in options.items():
        if name not in _KNOWN:
            hint = did_you_mean(name, _KNOWN, otherwise="docs/settings.md has all of them")
            raise TypeError(f"the server has no option {name!r}; {hint}")
        if name == "log_level" and value in _SILENT:
            raise TypeError(f"at log_level={value!r} the server does not say where it listens; leave it out")
        if value is not None:
            words += _words(_KNOWN[name], value)
    return words


def _words(option: Option, value: Any) -> Iterator[str]:
    match option.shape:
        case Shape.SWITCH:
            yield option.flag if value else f"--no-{option.flag[2:]}"
        case Shape.FLAG:
            yield from [option.flag] if value else []
        case Shape.LIST:
            several = [value] if isinstance(value, str) else value
            for each in several:
                # `=`: a value may begin with a dash.
                yield f"{option.flag}={each if isinstance(each, str) else ':'.join(map(str, each))}"
        case _:
            yield f"{option.flag}={value}"
