"""What `--loop` may say: one of the usual words, or `module:factory`, as uvicorn has it.

Not how a loop is run and closed (`loops.py`).

Invariant: what a factory gives is a loop, or the start ends with a sentence that names it.
"""

import os
import sys
from typing import TYPE_CHECKING

from bridgehead.errors import StartError, application_traceback, did_you_mean

if TYPE_CHECKING:
    import asyncio

# Loops that are known to turn a network, or to be watched by one.
OURS = frozenset({"auto", "asyncio", "uvloop"})
OF_THE_POLICY = frozenset({"asyncio", "none"})
_WORDS = ("auto", "asyncio", "uvloop", "none")
# A word of uvicorn's for a loop that nothing is known of here: as if its factory had been named.
_FACTORIES = {"zuvloop": "zuvloop:new_event_loop"}


def read(value: object) -> str:
    """A word, or the name of a factory."""
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


def made_by(name: str, app_dir: str) -> "asyncio.AbstractEventLoop":
    """The loop that a factory gives, which may be beside the application."""
    import asyncio  # not before: `serve --version` reads options, and needs no loop
    import importlib
    from operator import attrgetter

    module, _, attributes = name.partition(":")
    folder = os.path.abspath(app_dir or os.curdir)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        loop = attrgetter(attributes)(importlib.import_module(module))()
    except Exception as error:
        raise StartError(
            f"--loop {name!r} gave no loop: {type(error).__name__}: {error}",
            "name a function without arguments that returns an event loop",
            detail=application_traceback(error),
        ) from None
    if isinstance(loop, asyncio.AbstractEventLoop):
        return loop
    raise StartError(f"--loop {name!r} gave {loop!r}, which is no event loop", "return one from the function")
