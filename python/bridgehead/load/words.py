"""Numbers as people read them.

Not their meaning.

Invariant: at most four digits where a unit can take the rest.
"""

from collections.abc import Mapping

KINDS = {
    "connect": "no connection",
    "reset": "reset",
    "closed": "closed without an answer",
    "timeout": "timeout",
    "short_body": "answer cut off",
    "malformed": "no HTTP",
    "status_5xx": "status 5xx",
    "assertion": "not as expected",
}


def time(seconds: float) -> str:
    """A time in the unit that suits it."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{_digits(seconds / factor)} {unit}"
    return f"{_digits(seconds * 1e6)} µs"


def bytes_of(number: float) -> str:
    """A size, by 1024."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{_digits(number)} {unit}"
        number /= 1024
    raise AssertionError("the last unit takes every number")


def count(number: int) -> str:
    """With commas."""
    return f"{number:,}"


def a_second(number: float) -> str:
    """A rate."""
    return f"{number:,.0f}" if number >= 100 else _digits(number)


def share(part: int, whole: int) -> str:
    """Of a hundred; what is there is never shown as nothing."""
    return percent(part / whole if whole else 0.0)


def percent(part: float) -> str:
    """The same, of a part that is known: 0.25."""
    return f"{100 * part:.1f} %" if 100 * part >= 0.1 or not part else "<0.1 %"


def kinds(errors: Mapping[str, int]) -> str:
    """Errors by kind, in words."""
    return ", ".join(f"{KINDS.get(kind, kind)} {count(number)}" for kind, number in errors.items())


def _digits(number: float) -> str:
    if number >= 100:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"
