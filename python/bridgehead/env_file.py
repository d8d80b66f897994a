"""The variables of a `.env` file, as python-dotenv and uvicorn's users write them.

Not the environment itself: whoever asks for the file sets what it holds.

Invariant: a variable that is set already is left alone, and a line that cannot be understood ends the start.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bridgehead.errors import StartError

_EMPTY = re.compile(r"(?:\s|#[^\n]*)*")
_NAME = re.compile(r"(?:export[ \t]+)?(?P<name>[^\s=#'\"]+)[ \t]*(?P<equals>=?)(?P<gap>[ \t]*)")
_DOUBLE = re.compile(r'"(?P<value>(?:\\.|[^"\\])*)"', re.DOTALL)
_SINGLE = re.compile(r"'(?P<value>(?:\\.|[^'\\])*)'", re.DOTALL)
_BARE = re.compile(r"[^\n]*")
_COMMENT = re.compile(r"\s+#.*")
_REST = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_ESCAPED = re.compile(r"\\([\\'\"abfnrtv])")
_ESCAPED_IN_SINGLE = re.compile(r"\\([\\'])")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_INSERTED = re.compile(r"\$\{(?P<name>[^}:]*)(?::-(?P<otherwise>[^}]*))?\}")
_FORMS = "write NAME=value, NAME='value' or NAME=\"value\""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """What the file sets a variable to, and the place for messages."""

    value: str
    place: str


def read_env_file(path: str, environ: Mapping[str, str]) -> dict[str, Variable]:
    """What the file sets and `environ` has not. `${NAME}` sees `environ` first, then the lines above."""
    try:
        with open(path, encoding="utf-8-sig") as file:  # an editor may have put a byte order mark in front
            text = file.read()
    except UnicodeDecodeError:
        raise StartError(f"{path} is not UTF-8", "save it as UTF-8") from None
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        hint = "check the path of --env-file: it names a file of lines such as NAME=value"
        raise StartError(f"{path} cannot be read: {why}", hint) from None
    found: dict[str, Variable] = {}
    for line, name, value in _statements(path, text):
        known = {name: each.value for name, each in found.items()} | dict(environ)
        found[name] = Variable(value=_inserted(value, known), place=f"{path}, line {line}")
    return {name: each for name, each in found.items() if name not in environ}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """As it was written; what stands between single quotes is taken as it is."""

    text: str
    literal: bool


def _statements(path: str, text: str) -> Iterator[tuple[int, str, _Value]]:
    """Line, name and value of each statement; a name without `=` sets nothing."""
    position = _end(_EMPTY.match(text))
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        statement = _NAME.match(text, position)
        if statement is None:
            raise _misread(path, line, text, position)
        value, position = _value(text, statement)
        rest = _REST.match(text, position)
        if value is None or rest is None or "\0" in value.text:
            raise _misread(path, line, text, statement.start())
        position = _end(_EMPTY.match(text, rest.end()))
        if statement["equals"]:
            yield line, statement["name"], value


def _value(text: str, statement: re.Match[str]) -> tuple[_Value | None, int]:
    """The value after `NAME=`, and where it ends; None if its quote does not end."""
    start = statement.end()
    if not statement["equals"]:
        return _Value(text="", literal=True), start
    mark = text[start : start + 1]
    if mark in ("'", '"'):
        quoted = (_SINGLE if mark == "'" else _DOUBLE).match(text, start)
        if quoted is None:
            return None, start
        escaped = _ESCAPED_IN_SINGLE if mark == "'" else _ESCAPED
        plain = escaped.sub(lambda each: _ESCAPES.get(each[1], each[1]), quoted["value"])
        return _Value(text=plain, literal=mark == "'"), quoted.end()
    bare = _BARE.match(text, start)
    # `NAME=#x` is a value, `NAME= #x` a comment.
    plain = _COMMENT.sub("", f"{statement['gap']}{bare[0]}" if bare else "", count=1).strip()
    return _Value(text=plain, literal=False), _end(bare)


def _inserted(value: _Value, known: Mapping[str, str]) -> str:
    if value.literal:
        return value.text
    return _INSERTED.sub(lambda each: known.get(each["name"], each["otherwise"] or ""), value.text)


def _misread(path: str, line: int, text: str, position: int) -> StartError:
    # Only the name: the rest may be a secret.
    name = re.split(r"[\s=]", text[position:].removeprefix("export "), maxsplit=1)[0]
    return StartError(f"{path}, line {line}: {name!r} is not followed by a value that ends there", _FORMS)


def _end(found: re.Match[str] | None) -> int:
    return found.end() if found else 0
