"""Which objects of a module may be meant by who names the module alone.

Not the choice between them and not the words about it: `load_app.py`. What is named is served unjudged.

Invariant: nothing is called here, and an object that cannot be looked at is no candidate.
"""

import functools
import inspect
import re
import sys
from types import FunctionType, ModuleType
from typing import Any

_MESSAGES = 3  # scope, receive, send
_APPLICATION = re.compile(r"(?:^|_)(?:app|application|api|asgi|factory)(?:_|$)", re.IGNORECASE)
_FRAMEWORK = re.compile(r"ASGI|App|API|Starlette|Litestar|Quart|Sanic")  # as applications' types are called


def callables(holder: object) -> list[str]:
    """The public callables of a module or object: its own first, then what it imported."""
    names = [name for name in vars(holder) if not name.startswith("_")] if hasattr(holder, "__dict__") else []
    found = [name for name in names if callable(vars(holder)[name]) and _is_open(vars(holder)[name])]
    own = getattr(holder, "__name__", None)
    return sorted(found, key=lambda name: (getattr(vars(holder)[name], "__module__", own) != own, name))


def holders(holder: object) -> list[str]:
    """The public attributes that hold callables in turn, modules left out."""
    held = {name: each for name, each in getattr(holder, "__dict__", {}).items() if not name.startswith("_")}
    return sorted(
        name
        for name, each in held.items()
        if _is_open(each) and not isinstance(each, ModuleType) and callables(each)
    )


def applications(module: ModuleType) -> list[str]:
    """The ASGI applications of a module.

    Who takes a `scope`; else what the module defines with three parameters; else what it imported.
    """
    asked = {name: words for name in callables(module) if (words := _asked_for(vars(module)[name]))}
    sure = [name for name, words in asked.items() if words[0] == "scope"]
    own = {name for name in asked if _is_of(module, vars(module)[name])}
    # An instance tells only where its class is from; a function that another module wrote was imported.
    made = [name for name in sure if name in own or not isinstance(vars(module)[name], FunctionType)]
    return made or [name for name in asked if name in own] or sure


def of_fastapi(module: ModuleType) -> list[str]:
    """The instances of FastAPI that a module has, in the order in which `fastapi run` prefers them."""
    kind = getattr(sys.modules.get("fastapi"), "FastAPI", None)
    if not isinstance(kind, type):
        return []
    names = sorted(dir(module), key=lambda name: (name != "app", name != "api", name))
    held = ((name, getattr(module, name, None)) for name in names if name in vars(module))
    return [name for name, found in held if _is_open(found) and isinstance(found, kind)]


def looks_like_an_application(found: object) -> bool:
    """It takes the three of an application, and is awaited."""
    return _is_open(found) and bool(_asked_for(found))


def looks_like_a_factory(found: object) -> bool:
    """A plain function that can be called with nothing: no application can be one."""
    if not _is_open(found) or not isinstance(found, FunctionType) or inspect.iscoroutinefunction(found):
        return False
    parameters = inspect.signature(found).parameters.values()
    return all(each.default is not each.empty or each.kind is each.VAR_KEYWORD for each in parameters)


def looks_like_a_maker(name: str, found: object) -> bool:
    """A factory whose name or annotation says that it makes an application: not any without arguments."""
    if not looks_like_a_factory(found):
        return False
    returned = getattr(found, "__annotations__", {}).get("return")
    kind = returned if isinstance(returned, str) else getattr(returned, "__name__", "")
    return bool(_APPLICATION.search(name) or _FRAMEWORK.search(kind))


def _asked_for(found: object) -> list[str]:
    """The three parameters of what is called as an application is, and awaited; else nothing."""
    if isinstance(found, type):
        return []
    call: Any = found
    if not isinstance(found, FunctionType | functools.partial):
        call = getattr(type(found), "__call__", None)  # noqa: B004
    if not inspect.iscoroutinefunction(call):
        return []
    parameters = list(inspect.signature(call).parameters.values())[0 if call is found else 1 :]
    plain = all(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    return [each.name.lstrip("_") for each in parameters] if plain and len(parameters) == _MESSAGES else []


def _is_of(module: ModuleType, found: object) -> bool:
    """Whether it was written in that module, as far as it says."""
    while isinstance(found, functools.partial):  # its own type is functools', so what it calls must tell
        found = found.func
    return getattr(found, "__module__", None) == module.__name__


def _is_open(found: object) -> bool:
    """Whether it can be asked what it is: proxies raise before there is anything behind them."""
    try:
        for name in ("__class__", "__module__"):
            getattr(found, name, None)
    except Exception:
        return False
    return True
