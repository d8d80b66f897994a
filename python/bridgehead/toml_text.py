"""Values as TOML writes them, and what TOML calls their types.

Not a reader: Python has one (`tomllib`), and no writer.

Invariant: what is written here is read back as the same value.
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
    """One value. What TOML has no words for (a date among the settings is a mistake) is shown as a text."""
    from json import dumps

    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case bytes():
            return as_toml(value.decode("latin-1"))
        case list() | tuple():
            return f"[{', '.join(map(as_toml, value))}]"
        case Mapping():
            inner = ", ".join(f"{dumps(str(key))} = {as_toml(each)}" for key, each in value.items())
            return f"{{{inner}}}"
    # JSON's escapes are TOML's too, but for DEL, which JSON takes as it is.
    return dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def kind_of(value: object) -> str:
    """The type of a value, in words."""
    return "a boolean" if isinstance(value, bool) else _KINDS.get(type(value), "a date or a time")


def kinds(types: Iterable[type]) -> list[str]:
    """Types, in words, the plainest first."""
    return [words for kind, words in _KINDS.items() if kind in set(types)]
