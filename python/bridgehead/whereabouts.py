"""Where a task is and whose it is, in words for an operator.

Not who asks: a stop that a task outlives (`left_tasks.py`), and whoever looks at a running loop.

Invariant: nothing is raised, whatever the task runs, and nothing of a client's makes the words long.
"""

import asyncio
import gc
import inspect
import os
from collections.abc import Iterator, Mapping
from functools import partial
from traceback import walk_tb
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any

from bridgehead.errors import OUR_FOLDER
from bridgehead.route import route_of

_OURS = os.path.join(OUR_FOLDER, "asgi.py")
_STANDARD = os.path.dirname(asyncio.__file__) + os.sep
_LONGEST_PATH = 200
_REQUESTS = ("http", "websocket")
_DEEPEST = 200  # awaits within each other; more are a recursion, of which any will do
_CALLS_BACK = asyncio.Handle._run.__code__
_OF_PYTHON = (FunctionType, MethodType, NoneType)
_OF_C = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType, type)
# What a coroutine, a generator and an asynchronous generator call the same two things.
_KINDS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))
# They await an asynchronous generator's next item or its end; only the garbage collector sees which one's.
_STEPS_OF_GENERATORS = ("async_generator_asend", "async_generator_athrow")


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


def raised_at(error: BaseException) -> str:
    """The innermost line of the application's own that it went through; else of a library's."""
    steps = list(walk_tb(error.__traceback__))
    theirs = [each for each in steps if not _is_passed_over(each[0])]
    if not steps:
        return ""
    frame, line = (theirs or steps)[-1]
    return _in_words(frame.f_code, line)


def callback_in(frame: FrameType) -> str:
    """`the callback time.sleep()`, if asyncio calls from here what has no frame of its own."""
    if frame.f_code is not _CALLS_BACK:
        return ""
    try:
        return _callback_in_words(frame.f_locals["self"]._callback)
    except Exception:  # somebody's own object
        return ""


def handler_in(scope: Mapping[str, Any]) -> str:
    """The function that a framework has found for the request, if it says so in the scope."""
    code = _handlers_code(scope)
    return f"the handler {_in_words(code, code.co_firstlineno)}" if code is not None else ""


def handlers_file(scope: Mapping[str, Any]) -> str:
    """Where that function is written."""
    code = _handlers_code(scope)
    return code.co_filename if code is not None else ""


def request_of(task: "asyncio.Task[Any] | None") -> str:
    """Method and path, if the task answers a request of ours; else nothing."""
    return asked_in(scope_of(task))


def asked_in(scope: Mapping[str, Any]) -> str:
    """Method, path and route; nothing of a scope that is empty."""
    if not scope:
        return ""
    what = "WebSocket" if scope.get("type") == "websocket" else str(scope.get("method", ""))
    path = str(scope.get("path", ""))
    asked = f"{what} {path[:_LONGEST_PATH].encode('unicode_escape').decode()}"
    route = route_of(scope)
    return f"{asked} (route {route})" if route and route != path else asked


def names_in(scope: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """Its id, and its `traceparent` if it has one, where requests have ids."""
    state = scope.get("state")
    if not isinstance(state, dict) or not isinstance(name := state.get("request_id"), str):
        return None
    parent = state.get("traceparent")
    return name, parent if isinstance(parent, str) else None


def scope_of(task: "asyncio.Task[Any] | None") -> dict[str, Any]:
    """Of the request of ours that the task answers; else empty."""
    frame = getattr(task.get_coro(), "cr_frame", None) if task is not None else None
    if frame is None or frame.f_code.co_filename != _OURS:
        return {}
    scope = frame.f_locals.get("scope")
    return scope if isinstance(scope, dict) else {}


def scope_around(frame: FrameType | None) -> dict[str, Any]:
    """Of the request for which somebody up the stack runs this, as middleware does in tasks of its own."""
    found: dict[str, Any] = {}
    for _ in range(_DEEPEST):
        if frame is None:
            break
        code = frame.f_code
        if "scope" in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            scope = frame.f_locals.get("scope")
            if isinstance(scope, dict) and scope.get("type") in _REQUESTS:
                found = scope  # who is further out has it as it came
        frame = frame.f_back
    return found


def _callback_in_words(callback: Any) -> str:
    for _ in range(_DEEPEST):
        if not isinstance(callback, partial):
            break
        callback = callback.func
    if isinstance(callback, _OF_PYTHON) or isinstance(getattr(callback, "__self__", None), asyncio.Future):
        return ""  # it has frames, or is a step of a task's
    named = callback if isinstance(callback, _OF_C) else type(callback)
    name, module = named.__qualname__, named.__module__ or "builtins"
    if module.partition(".")[0] == __package__:
        return ""
    return f"the callback {name}()" if module == "builtins" else f"the callback {module}.{name}()"


def _handlers_code(scope: Mapping[str, Any]) -> CodeType | None:
    try:
        code = getattr(inspect.unwrap(scope["endpoint"]), "__code__", None)
    except Exception:  # there is none, or it is somebody's own object
        return None
    return code if isinstance(code, CodeType) else None


def _frames(awaited: Any) -> Iterator[FrameType]:
    """From the outermost to the innermost."""
    for _ in range(_DEEPEST):
        names = next((names for names in _KINDS if hasattr(awaited, names[0])), None)
        if names is None and type(awaited).__name__ in _STEPS_OF_GENERATORS:
            awaited = next((each for each in gc.get_referents(awaited) if inspect.isasyncgen(each)), None)
            continue
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
