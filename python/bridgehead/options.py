"""What an option is: its names in every place it can be set, and how what was written there is read.

Not the options themselves: `config.py` lists them, each once.

Invariant: reading is idempotent. What a reader returns it accepts again unchanged, so text from a flag or
the environment and values from Python go through the same door.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from bridgehead.errors import StartError, did_you_mean
from bridgehead.quantities import Bytes

T = TypeVar("T")
Reader = Callable[[object], T]
# Makes the path in a value absolute, for who wrote it meant it relative to a folder.
Anchor = Callable[[Any, str], Any]

# Written by the server from what really happens on the wire: a fixed value would corrupt the framing. All but
# the length concern one connection only (RFC 9110, section 7.6.1), and `proxy-connection` is a misspelling.
_FRAMING = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")  # RFC 9110, section 5.5

# The words click takes, so that an environment made for uvicorn means the same here.
_YES = frozenset({"1", "true", "t", "yes", "y", "on"})
_NO = frozenset({"0", "false", "f", "no", "n", "off"})


class Shape(Enum):
    """How an option is written on the command line."""

    TARGET = "the positional argument"
    VALUE = "--name VALUE"
    LIST = "--name VALUE, several times"
    SWITCH = "--name or --no-name"
    FLAG = "--name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting: everything that is known of it besides its Python type."""

    read: Reader[Any]
    help: str
    group: str
    shape: Shape
    metavar: str
    unset: str  # how an empty default is shown
    differs: str  # what uvicorn does instead, and our reason
    flag: str
    also: str  # a variable that whoever starts servers sets, of lower rank than ours and uvicorn's
    anchor: Anchor | None
    takes_none: bool  # None is a value of its own, and not the default
    secret: bool  # nobody may read it where it is shown
    name: str = ""
    default: object = None
    types: frozenset[type] = frozenset()  # as which TOML may hold it; empty: the reader judges alone

    @property
    def toml_key(self) -> str:
        """The key in a TOML file (the same with underscores is understood too)."""
        return self.name.replace("_", "-")

    @property
    def flags(self) -> str:
        """The words on the command line, as documentation shows them."""
        words = {Shape.TARGET: self.metavar, Shape.SWITCH: f"{self.flag}/--no-{self.flag[2:]}"}
        return words.get(self.shape, self.flag)

    @property
    def shown_default(self) -> str:
        """The default as an operator would write it."""
        if self.default is None or self.default == "" or self.default == ():
            return self.unset
        if isinstance(self.default, bool):
            return {True: "on", False: "off"}[self.default]
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    def environment_name(self, prefix: str) -> str:
        """The variable that sets this option, for `BRIDGEHEAD_` or `UVICORN_`."""
        return prefix + self.name.upper()


def option(
    default: T,
    *,
    read: Reader[T],
    help: str,  # noqa: A002
    group: str,
    shape: Shape = Shape.VALUE,
    metavar: str = "",
    unset: str = "none",
    differs: str = "",
    flag: str = "",
    also: str = "",
    anchor: Anchor | None = None,
    takes_none: bool = False,
    secret: bool = False,
) -> T:
    """A dataclass field that is an option."""
    known = Option(
        read=read,
        help=help,
        group=group,
        shape=shape,
        metavar=metavar,
        unset=unset,
        differs=differs,
        flag=flag,
        also=also,
        anchor=anchor,
        takes_none=takes_none,
        secret=secret,
    )
    return field(default=default, metadata={"option": known})


def options_of(settings: type[Any]) -> tuple[Option, ...]:
    """The options of a dataclass made with `option`, in the order they are written there."""
    found = []
    for each in fields(settings):
        known: Option = each.metadata["option"]
        flag = known.flag or "--" + each.name.replace("_", "-")
        types = _types_in_toml(each.type)
        found.append(replace(known, name=each.name, default=each.default, flag=flag, types=types))
    return tuple(found)


def _types_in_toml(annotation: Any) -> frozenset[type]:
    """What a TOML file holds for a value of this type: a number with a unit is a text there."""
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    held: dict[Any, set[type]] = {float: {float, int, str}, Bytes: {int, str}, tuple: {list}}
    held |= {kind: {kind} for kind in (bool, int, str, list, dict)}
    return frozenset[type]().union(*(held.get(get_origin(each) or each, set()) for each in members))


def below(value: Any, folder: str) -> Any:
    """An `Anchor`: a path that is relative to `folder`."""
    return os.path.normpath(os.path.join(folder, value)) if isinstance(value, str) else value


def files_below(value: Any, folder: str) -> Any:
    """An `Anchor`: one path, or several, relative to `folder`."""
    return below(value, folder) if isinstance(value, str) else each_below(value, folder)


def each_below(values: Any, folder: str) -> tuple[str, ...]:
    """An `Anchor`: paths that are relative to `folder`."""
    return tuple(below(each, folder) for each in values)


def application(value: object) -> Any:
    """A target in words, or the application itself."""
    if isinstance(value, str) or callable(value):
        return value
    raise StartError(f"{value!r} is neither a target nor an application", "write module:app")


def folders_below(values: Any, folder: str) -> tuple[str, ...]:
    """An `Anchor`: of patterns and directories, the directories that are relative to `folder`."""
    return tuple(below(each, folder) if os.path.isdir(below(each, folder)) else each for each in values)


def text(value: object) -> str:
    """Any text."""
    if isinstance(value, str):
        return value
    raise StartError(f"{value!r} is not a text")


def name_or_number(value: object) -> str:
    """Of a user or a group."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    return path(value)


def octal(value: object) -> str:
    """Rights of files, as `chmod` has them."""
    written = f"{value:03o}" if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(written, str) and re.fullmatch(r"(0o)?[0-7]{1,4}", written) and int(written, 8) <= 0o777:
        return written
    raise StartError(f"{value!r} is not a mask from 000 to 777", "write it in octal: 027")


def place(value: object) -> str:
    """A path, or no text for none."""
    return text(os.fspath(value) if isinstance(value, os.PathLike) else value)


def path(value: object) -> str:
    """A path, which has at least one letter."""
    if place(value):
        return place(value)
    raise StartError("'' is no path", "name a file, or leave it out")


def whole(low: int, high: int) -> Reader[int]:
    """A whole number from `low` to `high`."""

    def read(value: object) -> int:
        number = _number(value)
        if number is not None and low <= number <= high:
            return number
        raise StartError(f"{value!r} is not a whole number from {low} to {high}")

    return read


def limit(low: int, most: int) -> Reader[int]:
    """A whole number from `low`. Programs write `sys.maxsize` for no limit: what is beyond `most` is that."""

    def read(value: object) -> int:
        number = _number(value)
        if number is not None and low <= number:
            return min(number, most)
        raise StartError(f"{value!r} is not a whole number from {low} up")

    return read


def _number(value: object) -> int | None:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def switch(value: object) -> bool:
    """On or off."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _YES | _NO:
        return word in _YES
    raise StartError(f"{value!r} is neither true nor false", "write true or false")


def number_or(word: str, read_number: Reader[int]) -> Reader[Any]:
    """What `read_number` reads, or one word."""

    def read(value: object) -> int | str:
        if isinstance(value, str) and value.strip().lower() == word:
            return word
        try:
            return read_number(value)
        except StartError as problem:
            raise StartError(f"{problem.message}, nor {word!r}", problem.hint) from None

    return read


def choice(*words: str) -> Reader[str]:
    """One of some words; capitals do not matter."""

    def read(value: object) -> str:
        # What an enumeration of texts shows is not its text.
        word = (str.__str__(value) if isinstance(value, str) else str(value)).strip().lower()
        if word in words:
            return word
        raise StartError(f"{value!r} is not one of {', '.join(words)}", did_you_mean(word, words))

    return read


def maybe(read_given: Reader[T]) -> Reader[T | None]:
    """What `read_given` reads, or None."""
    return lambda value: None if value is None else read_given(value)


def unless_empty(read_given: Reader[T]) -> Reader[T | None]:
    """What `read_given` reads, or None; an empty text is none, as where a variable is not set."""
    return lambda value: None if value is None or value == "" else read_given(value)


def files(value: object) -> str | tuple[str, ...] | None:
    """A path as it was given, or several; an empty text is none."""
    given = [each for each in value if each != ""] if isinstance(value, list | tuple) else value
    if given is None or given in ("", []):
        return None
    found = many(path, separator=os.pathsep)(given)
    return found[0] if len(found) == 1 and isinstance(given, str | os.PathLike) else found


def many(read_one: Reader[T], *, separator: str | None = None) -> Reader[tuple[T, ...]]:
    """Several of what `read_one` reads; a text is split as in click: at blanks, or paths at `os.pathsep`."""

    def read(value: object) -> tuple[T, ...]:
        written = value.split(separator) if isinstance(value, str) else value
        if isinstance(written, os.PathLike):
            written = [written]
        if not isinstance(written, Iterable):
            raise StartError(f"{value!r} is not a list")
        return tuple(read_one(each) for each in written)

    return read


def header(value: object) -> tuple[bytes, bytes]:
    """A response header: `Name: value`, or the pair. Names are lower-cased, as ASGI has them."""
    name, content = _header_words(value)
    if not _TOKEN.fullmatch(name):
        raise StartError(f"{name!r} is not the name of a header", "write it as `Name: value`")
    if not _FIELD_VALUE.fullmatch(content):
        raise StartError(f"header {name!r} holds a character that none may", "use printable Latin-1")
    if name.lower() in _FRAMING:
        raise StartError(f"header {name!r} cannot be set", "the server writes it, from what it really does")
    return name.lower().encode("ascii"), content.strip(" \t").encode("latin-1")


def _header_words(value: object) -> tuple[str, str]:
    match value:
        case str() if ":" in value:
            name, _, content = value.partition(":")
            return name, content
        case (str() | bytes() as left, str() | bytes() as right):
            return _latin(left), _latin(right)
    hint = "write it as `Name: value`; in the environment without a blank, as `Name:value`"
    raise StartError(f"{value!r} is not a header", hint)


def _latin(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
