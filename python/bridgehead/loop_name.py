"""What `--loop` may say: one of the usual words, or `module:factory`, as uvicorn has it.

Not how a loop is run and closed (`loops.py`).

Invariant: what a factory gives is a loop, or the start ends with a sentence that names it.
"""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bridgehead.errors import StartError, application_traceback, did_you_mean

if TYPE_CHECKING:
    import asyncio

# Loops that are known to turn a network, or to be watched by one.
OURS = frozenset({"auto", "asyncio", "uvloop"})
OF_THE_POLICY = frozenset({"asyncio", "none"})
_WORDS = ("auto", "asyncio", "uvloop", "none")
# A word of uvicorn's for a loop that nothing is known of here: as if its factory had been named.
_FACTORIES = {"zuvloop": "zuvloop:new_event_loop"}


Factory = Callable[[], Any]


def read(value: object) -> Any:
    """A word, the name of a factory, or in code the factory itself."""
    if callable(value):
        return value
    text = (str.__str__(value) if isinstance(value, str) else str(value)).strip()
    module, colon, attributes = text.partition(":")
    if colon and module and attributes:
        return text
    if text.lower() in _WORDS:
        return text.lower()
    if text.lower() in _FACTORIES:
        return _FACTORIES[text.lower()]
    # `none` is short, and so near to much that was never meant to be it.
    meant = [word for word in _WORDS if word != "none"]
    hint = did_you_mean(text.lower(), meant, otherwise="or name a factory: module:function")
    raise StartError(f"{value!r} is not one of {', '.join(_WORDS)}, nor module:factory", hint)


def in_words(chosen: str | Factory) -> str:
    """For other processes, which import it: a factory that is there by its name, as that."""
    if isinstance(chosen, str):
        return chosen
    module, name = getattr(chosen, "__module__", ""), getattr(chosen, "__qualname__", "")
    found: Any = sys.modules.get(module) if module != "__main__" else None
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or found is not chosen:
        raise StartError(
            f"loop={chosen!r}: other processes cannot import it",
            'name a factory in a module: "module:factory"',
        )
    return f"{module}:{name}"


def made_by(chosen: str | Factory, app_dir: str) -> "asyncio.AbstractEventLoop":
    """The loop that a factory gives, which may be beside the application."""
    import asyncio  # not before: `serve --version` reads options, and needs no loop

    name = chosen if isinstance(chosen, str) else getattr(chosen, "__qualname__", repr(chosen))
    try:
        loop = (_imported(chosen, app_dir) if isinstance(chosen, str) else chosen)()
    except Exception as error:
        raise StartError(
            f"--loop {name!r} gave no loop: {type(error).__name__}: {error}",
            "name a function without arguments that returns an event loop",
            detail=application_traceback(error),
        ) from None
    if isinstance(loop, asyncio.AbstractEventLoop):
        return loop
    raise StartError(f"--loop {name!r} gave {loop!r}, which is no event loop", "return one from the function")


def _imported(name: str, app_dir: str) -> Factory:
    import importlib
    from operator import attrgetter

    module, _, attributes = name.partition(":")
    folder = os.path.abspath(app_dir or os.curdir)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    factory: Factory = attrgetter(attributes)(importlib.import_module(module))
    return factory
