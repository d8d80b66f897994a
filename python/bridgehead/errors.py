"""The errors an operator reads before anything is served, and how they are put into words.

Not the errors of requests: those belong to the bridge, and to the application's own `await`.

Invariant: a `StartError` says what is wrong and names the next step; nothing of ours shows in a traceback.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import traceback

EXIT_START_FAILED = 3  # uvicorn's STARTUP_FAILURE, which process managers know
EXIT_STOP_FAILED = 1  # the application's shutdown failed, or took longer than the last deadline
EXIT_OVERDUE = 4  # the same, of a worker to its parent, which tells the two apart

_PARTS_COUNT = 0.15  # of a likeness of 1: a letter too few in one of three words is less

OUR_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_IMPORT_MACHINERY = os.sep + os.path.join("importlib", "__init__.py")


class StartError(Exception):
    """The server cannot start: why, what to do next, and the application's traceback if there is one."""

    def __init__(self, message: str, hint: str = "", *, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail

    def __str__(self) -> str:
        """What a traceback shows, and the log of a server that was started from code."""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{self.message}{hint}"

    def render(self) -> str:
        """The lines to print on stderr, ending with a newline."""
        return f"{self.detail}bridgehead: error: {self}\n"

    def within(self, source: str) -> "StartError":
        """The same error, saying where the value came from (`--port`, `BRIDGEHEAD_PORT`)."""
        return StartError(f"{source}: {self.message}", self.hint, detail=self.detail)


class Interrupted(Exception):  # noqa: N818 (an event: nobody made an error)
    """The application raised `KeyboardInterrupt` in a task of ours, which must not carry that itself."""


def nearest(word: str, names: Iterable[str]) -> list[str]:
    """The names that may have been meant by `word`, the likeliest first.

    Those that go on where it ends come first; one all of whose parts it has is as good as a nearer one.
    """
    import difflib  # costs 5 ms, and only mistakes need it

    by_lower, lower = {name.lower(): name for name in names}, word.lower()
    near = difflib.get_close_matches(lower, by_lower, n=6, cutoff=0.6)

    def likeness(name: str) -> tuple[bool, float]:
        whole = _PARTS_COUNT if _parts(name) <= _parts(lower) else 0.0
        return name.startswith(lower), difflib.SequenceMatcher(None, name, lower).ratio() + whole

    return [by_lower[each] for each in sorted(near, key=likeness, reverse=True)[:3]]


def _parts(name: str) -> set[str]:
    return set(name.replace("_", "-").split("-"))


def did_you_mean(word: str, names: Iterable[str], *, otherwise: str = "") -> str:
    """A hint with the nearest name, or `otherwise` when none is near."""
    near = nearest(word, names)
    return f"did you mean `{near[0]}`?" if near else otherwise


def application_traceback(error: BaseException) -> str:
    """The traceback of `error` as the application's author wants it: without our frames and importlib's."""
    import traceback

    whole = traceback.TracebackException.from_exception(error)
    _keep_foreign_frames(whole, set())
    return "".join(whole.format())


def has_application_frames(error: BaseException) -> bool:
    """Whether any code besides ours and importlib's was running when `error` was raised."""
    import traceback

    return any(map(_is_foreign, traceback.extract_tb(error.__traceback__)))


def _keep_foreign_frames(shown: "traceback.TracebackException", seen: set[int]) -> None:
    if id(shown) in seen:
        return
    seen.add(id(shown))
    shown.stack[:] = [frame for frame in shown.stack if _is_foreign(frame)]
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            _keep_foreign_frames(other, seen)


def _is_foreign(frame: "traceback.FrameSummary") -> bool:
    name = frame.filename
    machinery = name.startswith("<frozen importlib") or name.endswith(_IMPORT_MACHINERY)
    return not machinery and not name.startswith(OUR_FOLDER)
