"""Values as TOML writes them, and what TOML calls their types.

Not a reader: Python has one (`tomllib`), and no writer.

Invariant: what is written here is read back as the same value, in tables and lists of the same type.
"""

from collections.abc import Iterable, Mapping

_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
    str: "a text",
    list: "a list",
    dict: "a table",
}


def as_toml(value: object) -> str:
    """One value. A setting that is a number may have it whole; within a table or a list types are kept."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _as_it_is(value)


def _as_it_is(value: object) -> str:
    """One value with its type. What TOML has no words for is shown as a text."""
    from datetime import date, time
    from json import dumps

    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case bytes():
            return _as_it_is(value.decode("latin-1"))
        case date() | time():
            return value.isoformat()
        case list() | tuple():
            return f"[{', '.join(map(_as_it_is, value))}]"
        case Mapping():
            inner = ", ".join(f"{_as_it_is(str(key))} = {_as_it_is(each)}" for key, each in value.items())
            return f"{{{inner}}}"
    # JSON's escapes are TOML's too, but for DEL, which JSON takes as it is.
    return dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def kind_of(value: object) -> str:
    """The type of a value, in words."""
    return "a boolean" if isinstance(value, bool) else _KINDS.get(type(value), "a date or a time")


def kinds(types: Iterable[type]) -> list[str]:
    """Types, in words, the plainest first."""
    return [words for kind, words in _KINDS.items() if kind in set(types)]
