"""Tells of changes to loggers while they are made: other handlers, filters or levels, another way upwards.

A logger that is watched has a class of ours, which is its own one with that added. Not what is watched, nor
what comes of it (`access_lines.py`). What a list of handlers is given by its own methods is not seen.

Invariant: whoever makes a change waits for nobody, and a record is handled as if nobody watched.
"""

import logging
import os
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any

_followers: list[Callable[[], object]] = []
_usual: dict[logging.Logger, type[logging.Logger]] = {}  # what each was before
_telling: dict[type[logging.Logger], type[logging.Logger]] = {}

_being_told = threading.Lock()
_news = False
_ours = threading.local()


def follow(step: Callable[[], object]) -> None:
    """Call this after each change, on the thread that made it or on one that is at it anyway."""
    _followers.append(step)


def leave(step: Callable[[], object]) -> None:
    """Not any more. The last one who leaves gives the loggers their classes back."""
    with suppress(ValueError):
        _followers.remove(step)
    if not _followers:
        _let_go()


def watch(loggers: Iterable[logging.Logger]) -> None:
    """Changes to these are told of, as long as somebody follows."""
    for logger in loggers:
        usual = type(logger)
        if logger in _usual or usual in _telling.values():
            continue
        with suppress(TypeError):  # a class whose objects cannot get another one
            logger.__class__ = _telling_class(usual)
            _usual[logger] = usual


@contextmanager
def unheard() -> Generator[None, None, None]:
    """What this thread changes meanwhile is our own doing."""
    before, _ours.is_at_it = getattr(_ours, "is_at_it", False), True
    try:
        yield
    finally:
        _ours.is_at_it = before


def tell() -> None:
    """Something has changed. Who is told may change something as well: that is told of when it is through."""
    global _news
    if not _followers or getattr(_ours, "is_at_it", False):
        return
    _news = True
    # Whoever has the lock looks again. Waited for, it might wait for `logging`'s own, which a change holds.
    while _news and _being_told.acquire(blocking=False):
        try:
            _news = False
            for step in list(_followers):
                step()
        finally:
            _being_told.release()


def _telling_class(usual: Any) -> type[logging.Logger]:
    if usual in _telling:
        return _telling[usual]

    class Telling(usual):  # type: ignore[misc]
        __slots__ = ()

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            tell()

        def setLevel(self, level: int | str) -> None:  # noqa: N802
            super().setLevel(level)
            tell()

        def addHandler(self, hdlr: logging.Handler) -> None:  # noqa: N802
            super().addHandler(hdlr)
            tell()

        def removeHandler(self, hdlr: logging.Handler) -> None:  # noqa: N802
            super().removeHandler(hdlr)
            tell()

        def addFilter(self, filter: Any) -> None:  # noqa: A002, N802
            super().addFilter(filter)
            tell()

        def removeFilter(self, filter: Any) -> None:  # noqa: A002, N802
            super().removeFilter(filter)
            tell()

    # It is the same to whoever looks: its name is in the logger's `repr`.
    Telling.__name__, Telling.__qualname__ = usual.__name__, usual.__qualname__
    Telling.__module__ = usual.__module__
    _telling[usual] = Telling
    return Telling


def _let_go() -> None:
    for logger, usual in _usual.items():
        if type(logger) is _telling.get(usual):
            logger.__class__ = usual
    _usual.clear()


def _forget() -> None:
    """A forked child serves nobody."""
    global _being_told
    _being_told = threading.Lock()
    _followers.clear()
    _let_go()


os.register_at_fork(after_in_child=_forget)
