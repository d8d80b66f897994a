"""What a server has said so far, line by line, while it goes on.

Not where lines come from: a pipe of a process, or the loggers of this one.

Invariant: a wait for a line ends with the line, with the server, or at its deadline, and says what had come.
"""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

# What the log of a server that ended well does not have.
COMPLAINTS = ("Traceback", "panicked", "Task was destroyed", "was never awaited", "Fatal Python error")
# Nor one of these while it stops: as text, or as JSON.
_ERROR = re.compile(r'(?:ERROR|CRITICAL): |\{"time":"[^"]*","level":"(?:ERROR|CRITICAL)"')
_STOPS = "Shutting down"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Lines; of a server that says more, the last.
KEPT = 100_000


class Logs:
    """Lines, stdout's and stderr's as they came. `"text" in logs` looks through all of them."""

    def __init__(self) -> None:
        # Readers add lines while tests look at them.
        self._changed = threading.Condition()
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._ended = False
        self._added = 0
        # How many there were when it was told to stop.
        self._before_stop: int | None = None

    @property
    def text(self) -> str:
        """Everything."""
        with self._changed:
            return "".join(f"{line}\n" for line in self._lines)

    def __contains__(self, text: str) -> bool:
        return text in self.text

    def __iter__(self) -> Iterator[str]:
        with self._changed:
            return iter(list(self._lines))

    def __len__(self) -> int:
        with self._changed:
            return len(self._lines)

    def __str__(self) -> str:
        return self.text

    def wait_for(self, text: str, *, count: int = 1, timeout: float = 10.0) -> str:
        """The `count`th line with `text` in it, once it is there."""

        def found(lines: Sequence[str]) -> str | None:
            matching = [line for line in lines if text in line]
            return matching[count - 1] if len(matching) >= count else None

        return self.wait(found, f"{text!r} in the log", timeout)

    def wait(self, found: Callable[[Sequence[str]], T | None], what: str, timeout: float) -> T:
        """What `found` makes of the lines, once that is not None."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while (value := found(self._lines)) is None:
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    why = "before the server ended" if self._ended else f"within {timeout:g} s"
                    said = "".join(f"    {line}\n" for line in self._lines) or "    nothing\n"
                    raise AssertionError(f"no {what} {why}; it said:\n{said}")
                self._changed.wait(left)
            return value

    def complaints(self, allow: tuple[str, ...] = ()) -> list[str]:
        """Lines that say that something went wrong, but for those with a text of `allow`."""
        said = [line for line in self if any(complaint in line for complaint in COMPLAINTS)]
        said += [line for line in self._of_stop() if _ERROR.match(line) and line not in said]
        return [line for line in said if not any(each in line for each in allow)]

    def stops(self) -> None:
        """The server is told to stop now."""
        with self._changed:
            if self._before_stop is None:
                self._before_stop = self._added

    def _of_stop(self) -> list[str]:
        """What it said of its stop."""
        with self._changed:
            if self._before_stop is None:
                return []
            first = max(0, self._before_stop - (self._added - len(self._lines)))
            lines = list(self._lines)[first:]
        # Lines from before may arrive late.
        began = next((at for at, line in enumerate(lines) if _STOPS in line), 0)
        return lines[began:]

    def add(self, line: str) -> None:
        """One more line, without its colours."""
        with self._changed:
            self._lines.append(_COLOUR.sub("", line))
            self._added += 1
            self._changed.notify_all()

    def end(self) -> None:
        """Nothing more comes."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
