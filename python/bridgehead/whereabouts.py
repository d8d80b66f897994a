"""Where a task is and whose it is, in words for an operator.

Not who asks: a stop that a task outlives (`left_tasks.py`), and whoever looks at a running loop.

Invariant: nothing is raised, whatever the task runs, and nothing of a client's makes the words long.
"""

import asyncio
import os
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from bridgehead.errors import OUR_FOLDER
from bridgehead.route import route_of

_OURS = os.path.join(OUR_FOLDER, "asgi.py")
_STANDARD = os.path.dirname(asyncio.__file__) + os.sep
_LONGEST_PATH = 200
_DEEPEST = 200  # awaits within each other; more are a recursion, of which any will do
# What a coroutine, a generator and an asynchronous generator call the same two things.
_KINDS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


def of(task: "asyncio.Task[Any]") -> str:
    """`the request GET /reports, in load() at shop/reports.py:31`."""
    place = place_of(task)
    return f"{name_of(task)}, in {place}" if place else name_of(task)


def name_of(task: "asyncio.Task[Any]") -> str:
    """`the request GET /reports`, `the task 'poll'`."""
    request = request_of(task)
    return f"the request {request}" if request else f"the task {task.get_name()!r}"


def place_of(task: "asyncio.Task[Any]") -> str:
    """The innermost line of the application's own that it waits at; of a library's, if there is no other."""
    frames = list(_frames(task.get_coro()))
    theirs = [each for each in frames if not _is_passed_over(each)]
    return frame_in_words((theirs or frames)[-1]) if frames else _function_of(task.get_coro())


def frame_in_words(frame: FrameType) -> str:
    """`load() at shop/reports.py:31`."""
    return _in_words(frame.f_code, frame.f_lineno)


def request_of(task: "asyncio.Task[Any] | None") -> str:
    """Method and path, if the task answers a request of ours; else nothing."""
    frame = getattr(task.get_coro(), "cr_frame", None) if task is not None else None
    if frame is None or frame.f_code.co_filename != _OURS:
        return ""
    scope = frame.f_locals.get("scope")
    if not isinstance(scope, dict):
        return ""
    what = "WebSocket" if scope.get("type") == "websocket" else str(scope.get("method", ""))
    path = str(scope.get("path", ""))
    asked = f"{what} {path[:_LONGEST_PATH].encode('unicode_escape').decode()}"
    route = route_of(scope)
    return f"{asked} (route {route})" if route and route != path else asked


def _frames(awaited: Any) -> Iterator[FrameType]:
    """From the outermost to the innermost."""
    for _ in range(_DEEPEST):
        names = next((names for names in _KINDS if hasattr(awaited, names[0])), None)
        if names is None:
            return
        frame, awaited = (getattr(awaited, name) for name in names)
        if frame is not None:
            yield frame


def _function_of(coroutine: Any) -> str:
    """Of one that has ended meanwhile, or runs no Python of its own."""
    codes = (getattr(coroutine, name, None) for name in ("cr_code", "gi_code", "ag_code"))
    code = next((each for each in codes if each is not None), None)
    return _in_words(code, code.co_firstlineno) if code is not None else ""


def _in_words(code: CodeType, line: int | None) -> str:
    return f"{code.co_qualname}() at {_short(code.co_filename)}:{line}"


def _is_passed_over(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith((_STANDARD, OUR_FOLDER))


def _short(file: str) -> str:
    """Below the current directory as it is seen from there."""
    try:
        return file.removeprefix(os.getcwd() + os.sep)
    except OSError:  # it was removed
        return file
