"""Times and sizes as an operator writes them: `500ms`, `2m`; `64k`, `16M`.

Not other numbers: `options.py` reads those.

Invariant: reading is idempotent, and a number without a unit is seconds or bytes. Programs write what nobody
reaches for no end: that is the longest time, or the largest size, that there is.
"""

import math
import re
from collections.abc import Callable
from typing import NewType

from bridgehead.errors import StartError

Bytes = NewType("Bytes", int)

LONGEST_SECONDS = 1e8  # three years; far below where adding it to a clock overflows
LARGEST_SIZE = 2**62  # twice that is still a size for Rust

# The longer word first, since `ms` ends with `s`. Thousandths are divided, for 0.007 is not 7 * 0.001.
# Reports write `µs`: the micro sign, which keyboards have; the Greek letter looks the same.
_TIMES = {
    **dict.fromkeys(("us", "\u00b5s", "\u03bcs"), (1, 1_000_000)),
    "ms": (1, 1000),
    "s": (1, 1),
    "m": (60, 1),
    "h": (3600, 1),
}
# As in nginx and in systemd, a k is 1024: what these count is memory.
_SIZES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_SIZE = re.compile(r"(?P<digits>[0-9]+) ?(?P<unit>|[kKmMgG])(?:(?<=[kKmMgG])iB)?")
_TIME_HINT = "give seconds, such as 30 or 0.5, or a unit: 500ms, 30s, 2m, 1h"
_SIZE_HINT = "give bytes, or a unit: 64k, 16M, 1G (of 1024)"


def seconds(value: object) -> float:
    """A time in seconds, with or without a fraction; a text may have a unit."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise StartError(f"{value!r} is not a number of seconds", _TIME_HINT)
    written, factor, divisor = value, 1, 1
    if isinstance(written, str):
        written = written.strip()
        unit = next((unit for unit in _TIMES if written.endswith(unit)), "")
        factor, divisor = _TIMES.get(unit, (1, 1))
        written = written.removesuffix(unit)
    try:
        number = float(written) * factor / divisor
    except (ValueError, OverflowError):
        raise StartError(f"{value!r} is not a number of seconds", _TIME_HINT) from None
    if not math.isfinite(number) or number < 0:
        raise StartError(f"{value!r} is not a time from 0 up", _TIME_HINT)
    return min(number, LONGEST_SECONDS)


def size(value: object) -> Bytes:
    """A number of bytes; a text may have a unit."""
    number: object = value
    if isinstance(value, str):
        parts = _SIZE.fullmatch(value.strip())
        number = int(parts["digits"]) * _SIZES[parts["unit"].lower()] if parts else None
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return Bytes(min(number, LARGEST_SIZE))
    raise StartError(f"{value!r} is not a number of bytes", _SIZE_HINT)


def at_most(most: int) -> Callable[[object], Bytes]:
    """A size that is not nothing; what is beyond `most` is that."""

    def read(value: object) -> Bytes:
        number = size(value)
        if not number:
            raise StartError(f"{value!r} is not a size of 1 byte or more", _SIZE_HINT)
        return Bytes(min(number, most))

    return read


def some(most: int) -> Callable[[object], Bytes]:
    """A size that is not nothing, and not more than `most`."""

    def read(value: object) -> Bytes:
        number = size(value)
        if not 0 < number <= most:
            raise StartError(f"{value!r} is not from 1 to {most} bytes", _SIZE_HINT)
        return number

    return read
