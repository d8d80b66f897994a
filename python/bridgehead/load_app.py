"""`module:app` → the application, or an error that names the next step.

Not a judge of applications: what is loaded is callable, and that is all that is known of it.

Invariant: a failure of the application shows the application's traceback, and none of our frames.
"""

import inspect
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bridgehead import theirs
from bridgehead.candidates import (
    applications,
    callables,
    holders,
    looks_like_a_factory,
    looks_like_a_maker,
    looks_like_an_application,
    of_fastapi,
)
from bridgehead.config import Application
from bridgehead.errors import StartError, application_traceback, has_application_frames, nearest
from bridgehead.load_module import load_module, loop_hint
from bridgehead.meant import in_directory, refuse_misread, submodule
from bridgehead.target import Calling, Target, parse_target

_USUAL_NAMES = ("app", "application", "api")
_SHOWN_NAMES = 8  # more are not read
_THEIRS = "the traceback above is the application's"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedApp:
    """An application, and the words that name it in messages."""

    application: Application
    name: str


def load(target: str | Application, *, factory: bool, app_dir: str) -> LoadedApp:
    """Find what `target` names. An application that is one already is taken as it is, as in uvicorn."""
    if not isinstance(target, str):
        name = getattr(target, "__qualname__", type(target).__qualname__)
        if inspect.isroutine(target) or inspect.isclass(target):  # of an object the class is a framework's
            theirs.claim(sys.modules.get(target.__module__ or ""))
        if not factory and looks_like_a_factory(target):
            _tell(f"{name} takes no arguments: it is called as a factory. Say factory=True")
            factory = True
        return LoadedApp(application=_built(target, name) if factory else target, name=name)
    refuse_misread(target, app_dir)
    wanted = parse_target(target)
    calls = factory or wanted.calling is Calling.CALLED
    module = load_module(wanted, app_dir=app_dir)
    theirs.claim(module)
    if wanted.attributes:
        name, found = f"{wanted.place}:{'.'.join(wanted.attributes)}", _attribute(module, wanted)
    else:
        name, found = _only_application(module, wanted, factory=calls)
    if not callable(found):
        hint = _names_hint(wanted, applications(module) or callables(module))
        if isinstance(found, ModuleType):
            hint = f"did you mean `{found.__name__}`?"
        raise StartError(f"{name} is of type {type(found).__name__}, which cannot be called", hint)
    if calls:
        return LoadedApp(application=_built(found, name), name=f"{name}()")
    if looks_like_a_factory(found):
        _tell(f"{name} takes no arguments: it is called as a factory. Write {name}() to say so")
        return LoadedApp(application=_built(found, name), name=f"{name}()")
    return LoadedApp(application=found, name=name)


def _attribute(module: ModuleType, wanted: Target) -> object:
    found: object = module
    path = wanted.place
    for index, name in enumerate(wanted.attributes):
        separator = "." if index else ":"
        try:
            found = _asked(found, name, path + separator)
        except AttributeError as problem:
            # A `__getattr__` or a property of the application may have raised it, for a reason of its own.
            detail = application_traceback(problem) if has_application_frames(problem) else ""
            message = f"{path} has no attribute {name!r}"
            meant = submodule(found, name, wanted.attributes[index + 1 :])
            hint = f"did you mean `{meant}`?" if meant else _missing_hint(found, path + separator, name)
            if not meant and isinstance(found, ModuleType):
                hint = in_directory(found, f":{name}") or hint
            raise StartError(message, hint, detail=detail) from None
        path += separator + name
    return found


def _asked(holder: object, name: str, prefix: str) -> object:
    """An attribute; asking for it may run the application's code, which may raise what it likes."""
    try:
        return getattr(holder, name)
    except (AttributeError, KeyboardInterrupt):
        raise
    except BaseException as problem:
        message = f"{prefix}{name} raised {type(problem).__name__}"
        raise StartError(message, _THEIRS, detail=application_traceback(problem)) from None


def _missing_hint(holder: object, prefix: str, name: str) -> str:
    names = callables(holder) or holders(holder)
    near = nearest(name, names)
    others = [each for each in names if each not in near]
    listed = ", ".join([*near, *others][:_SHOWN_NAMES])
    has = f"it has {listed}" if listed else "it holds nothing that could be served"
    return f"did you mean `{prefix}{near[0]}`? {has}" if near else has


def _only_application(module: ModuleType, wanted: Target, *, factory: bool) -> tuple[str, object]:
    """The application of a module that was named alone."""
    if factory:
        hint = _names_hint(wanted, callables(module))
        raise StartError(f"{wanted.place} does not say which function is the factory", hint)
    if names := of_fastapi(module):
        _tell_of_wrapper(module, wanted, names)
        return f"{wanted.place}:{names[0]}", getattr(module, names[0])
    for name in _USUAL_NAMES:
        found: object = None
        with suppress(AttributeError):
            found = _asked(module, name, f"{wanted.place}:")
        if callable(found):
            return f"{wanted.place}:{name}", found
    names = applications(module)
    if len({id(getattr(module, name)) for name in names}) == 1:
        return f"{wanted.place}:{names[0]}", getattr(module, names[0])
    if names:
        raise StartError(f"{wanted.place} has several applications", _names_hint(wanted, names))
    if hint := in_directory(module):
        raise StartError(f"{wanted.place} is a directory", hint)
    names = callables(module)
    makers = [f"{name}()" for name in names if looks_like_a_maker(name, getattr(module, name))]
    hint = _names_hint(wanted, makers)
    if names and not makers:
        hint = f"{hint}; it has {', '.join(names[:_SHOWN_NAMES])}"
    raise StartError(f"{wanted.place} has no {', '.join(_USUAL_NAMES)}, nor another ASGI application", hint)


def _tell_of_wrapper(module: ModuleType, wanted: Target, names: list[str]) -> None:
    """Who wraps an application in another and calls that `app` may have meant it."""
    other = vars(module).get("app")
    if names[0] != "app" and looks_like_an_application(other):
        taken = f"{wanted.place}:{names[0]}"
        _tell(
            f"{taken} is served, the FastAPI, as `fastapi run` would. Write {wanted.place}:app for that one"
        )


def _names_hint(wanted: Target, names: Iterable[str]) -> str:
    shown = [f"`{wanted.place}:{name}`" for name in names][:_SHOWN_NAMES]
    return (
        f"name it: {' or '.join(shown)}"
        if shown
        else f"name an application in it: `{wanted.place}:attribute`"
    )


def _built(factory: Callable[..., Any], name: str) -> Application:
    """What a factory returns."""
    try:
        inspect.signature(factory).bind()
    except TypeError as problem:
        hint = "wrap it in a function without arguments, and name that"
        if looks_like_an_application(factory):
            hint = "leave out what calls it: `()`, or --factory"
            raise StartError(f"{name} is an application, and no factory", hint) from None
        raise StartError(f"the factory {name} needs arguments: {problem}", hint) from None
    except ValueError:
        pass  # written in C without a signature: calling it will tell
    try:
        application: Any = factory()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # SystemExit too: a factory that exits must say so
        detail = application_traceback(problem)
        message = f"the factory {name} raised {type(problem).__name__}"
        raise StartError(message, loop_hint(problem) or _THEIRS, detail=detail) from None
    if inspect.iscoroutine(application):
        application.close()
        raise StartError(f"the factory {name} is a coroutine function", "make it a plain function")
    if not callable(application):
        kind = type(application).__name__
        raise StartError(
            f"the factory {name} returned {kind}, which cannot be called", "return the application"
        )
    return application  # type: ignore[no-any-return]


def _tell(sentence: str) -> None:
    from bridgehead import log

    log.logger().warning("%s", sentence)
