"""How an application is called: ASGI 3, ASGI 2, WSGI. Whatever it is, it is an ASGI 3 application afterwards.

Not where it is found (`load_app.py`), and not how WSGI is run (`wsgi.py`).

Invariant: an application is asked for its signature, and is not called.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from bridgehead.asgi import Application
from bridgehead.errors import StartError
from bridgehead.wsgi import from_wsgi

_ASGI3 = ("scope", "receive", "send")
_ASGI2 = ("scope",)
_WSGI = ("environ", "start_response")


def adapt(application: Callable[..., Any], interface: str, name: str) -> tuple[Application, str]:
    """What can be served, and which interface the application has. `name` is for messages."""
    if interface == "auto":
        interface = _interface_of(application, name)
    match interface:
        case "asgi2":
            return _from_asgi2(application), interface
        case "wsgi":
            if _is_asgi(application):
                hint = "leave --interface wsgi out (in code, interface='wsgi')"
                raise StartError(f"{name} is an ASGI application: it takes three arguments, WSGI's two", hint)
            return from_wsgi(application), interface
    return application, interface


def _interface_of(application: Callable[..., Any], name: str) -> str:
    """An async callable is ASGI 3; others are what they can be called with, ASGI 3 before ASGI 2."""
    if _is_async(application) or _takes(application, _ASGI3):
        return "asgi3"
    if _takes(application, _ASGI2):
        return "asgi2"
    if _takes(application, _WSGI):
        hint = "serve it with --interface wsgi (in code, interface='wsgi')"
        raise StartError(f"{name} takes two arguments, as a WSGI application does", hint)
    if (takes := _signature(application)) is not None:
        hint = "name the application itself: what takes (scope, receive, send)"
        raise StartError(f"{name} is called with {takes}, which no ASGI or WSGI application is", hint)
    return "asgi3"


def _signature(application: Callable[..., Any]) -> str | None:
    """In words; None of what says nothing of itself."""
    try:
        return str(inspect.signature(application))
    except (TypeError, ValueError):
        return None


def _is_async(application: Callable[..., Any]) -> bool:
    if inspect.isclass(application):
        return hasattr(application, "__await__")
    return inspect.iscoroutinefunction(application) or inspect.iscoroutinefunction(
        getattr(application, "__call__", None)  # noqa: B004 - the method itself is looked at
    )


def _is_asgi(application: Callable[..., Any]) -> bool:
    """Whether it is one without a doubt: what is written in C says nothing of itself."""
    if _is_async(application):
        return True
    try:
        inspect.signature(application)
    except ValueError:
        return False
    return _takes(application, _ASGI3) and not _takes(application, _WSGI)


def _takes(application: Callable[..., Any], arguments: tuple[str, ...]) -> bool:
    try:
        inspect.signature(application).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # written in C, without a signature: it is taken for what is most usual
        return arguments is _ASGI3
    return True


def _from_asgi2(application: Callable[..., Any]) -> Application:
    """Called twice: with the scope, and what that gives with `receive` and `send`."""

    @functools.wraps(application, updated=())
    async def single(scope: dict[str, Any], receive: Any, send: Any) -> None:
        instance = application({**scope, "asgi": {**scope["asgi"], "version": "2.0"}})
        await instance(receive, send)

    return single
