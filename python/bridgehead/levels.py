"""How loud a log is: in words, and as `logging` numbers it.

Not what is said at which level (`log.py`).

Invariant: a level that was read is a word if it has one, and else a number.
"""

from bridgehead.errors import StartError
from bridgehead.options import choice

# As `logging` has them; trace is uvicorn's.
NUMBERS = {"critical": 50, "error": 40, "warning": 30, "info": 20, "debug": 10, "trace": 5}
_WORDS = {number: word for word, number in NUMBERS.items()}
_read_word = choice(*NUMBERS)


def read(value: object) -> str | int:
    """An option's reader: a word, or in code and in a file any number that Python would take."""
    if not isinstance(value, int) or isinstance(value, bool):
        return _read_word(value)
    if value < 0:
        raise StartError(f"{value} is not a level", "write a word, or a number from 0")
    return _WORDS.get(value, value)


def number_of(level: str | int) -> int:
    """As `logging` has it."""
    return NUMBERS[level] if isinstance(level, str) else level
