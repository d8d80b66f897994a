"""The words that name an application: `module:attr`, `module`, `path/to/file.py[:attr]`, `module:factory()`.

Not an import: nothing here touches a file or a module.

Invariant: a target names a module or a file, never both.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from bridgehead.errors import StartError

_FORMS = "write module:attribute, module, path/to/file.py:attribute or module:factory()"
_FILE = re.compile(r"(?P<place>.+\.py)(?::(?P<rest>.*))?", re.DOTALL)
_CALL = re.compile(r"(?P<attributes>[^()]*)(?P<call>\(\s*\))?")
_ATTRIBUTE_OF_A_CALL = re.compile(r"[^()]*\(\s*\).+", re.DOTALL)


class Calling(Enum):
    """Whether the target itself says that it is a factory."""

    CALLED = auto()
    UNSAID = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where the application is: `place` as written, then the attributes to walk, if any were named."""

    place: str
    is_file: bool
    attributes: tuple[str, ...]
    calling: Calling


def parse_target(written: str) -> Target:
    """Understand the positional argument."""
    if file := _FILE.fullmatch(written):
        return _target(written, file["place"], file["rest"], is_file=True)
    place, colon, rest = written.partition(":")
    if "/" in place:
        module = place.strip("./").replace("/", ".")
        hint = f"write `{place}.py{colon}{rest}` or `{module}{colon}{rest}`"
        if "." in place.rpartition("/")[2]:
            hint = "name a .py file, or a module"
        raise StartError(f"{written!r} is neither a module nor a .py file", hint)
    if not place or not all(part.isidentifier() for part in place.split(".")):
        raise StartError(f"{written!r} does not name a module", _FORMS)
    return _target(written, place, rest if colon else None, is_file=False)


def _target(written: str, place: str, rest: str | None, *, is_file: bool) -> Target:
    if rest is None:
        return Target(place=place, is_file=is_file, attributes=(), calling=Calling.UNSAID)
    parts = _CALL.fullmatch(rest)
    if _ATTRIBUTE_OF_A_CALL.fullmatch(rest):
        hint = "name a function that returns the application itself"
        raise StartError(f"{written!r} goes on after it calls a factory", hint)
    if parts is None:
        raise StartError(f"{written!r} calls a factory with arguments", "name a function without arguments")
    attributes = tuple(parts["attributes"].strip().split("."))
    if not all(name.isidentifier() for name in attributes):
        raise StartError(f"{written!r} does not name an attribute", _FORMS)
    calling = Calling.CALLED if parts["call"] else Calling.UNSAID
    return Target(place=place, is_file=is_file, attributes=attributes, calling=calling)
