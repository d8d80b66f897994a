"""What happens when the application forks: parent and child stay sane.

The child has none of our threads. It must not hold our clients and ports, and a signal to it is its own.

Invariant: between the fork and the child's own handlers no signal is lost: they are blocked meanwhile. What a
child makes after that is its own, as if it had never been forked.
"""

import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NoReturn

from bridgehead import own_handlers
from bridgehead._native import disown_descriptors

_ENDING = (signal.SIGINT, signal.SIGTERM)

_registered = False
_mask: set[int] = set()
_sockets: set[socket.socket] = set()
_handlers: list[tuple[int, object, Any]] = []
_steps: list[Callable[[], None]] = []
generation = 0  # how many forks lie between this process and the one that the module was loaded in


def register(sockets: Iterable[socket.socket]) -> None:
    """Look after every fork of this process from here on; no child of it keeps these sockets."""
    global _registered
    _sockets.update(sockets)
    if not _registered:
        _registered = True
        os.register_at_fork(before=_block, after_in_parent=_unblock, after_in_child=_forget)


def forget(sockets: Iterable[socket.socket]) -> None:
    """These are closed, or somebody else's."""
    _sockets.difference_update(sockets)


def in_child(step: Callable[[], None]) -> None:
    """What a child does before anything of the application's."""
    _steps.append(step)


def not_in_child(step: Callable[[], None]) -> None:
    """It has no need of that any more; a child has done it."""
    with suppress(ValueError):
        _steps.remove(step)


def replaces(number: int, ours: object, theirs: object) -> None:
    """A signal handler of ours stands where this one did, which a child gets back."""
    _handlers.append((number, ours, theirs))


def restores(ours: object) -> None:
    """That handler of ours stands nowhere any more."""
    _handlers[:] = [each for each in _handlers if each[1] != ours]


def _block() -> None:
    _mask.clear()
    _mask.update(signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING))


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask)


def _forget() -> None:
    """In the child: let go of what is the parent's."""
    global generation
    generation += 1
    disown_descriptors()
    own_handlers.forget()
    for step in _steps:
        step()
    _steps.clear()
    for each in _sockets:
        each.close()
    _sockets.clear()
    with suppress(ValueError):
        # Else its signals wake the parent's loop, which takes them for its own.
        signal.set_wakeup_fd(-1)
    for number in _ENDING:
        # The system's side of these is our control thread's, which the child has not got; Python's side is
        # what the application thinks is in force.
        with suppress(ValueError, TypeError):
            signal.signal(number, _theirs(number) or signal.SIG_DFL)
    _handlers.clear()
    _unblock()


def _theirs(number: int) -> Any:
    """The handler that is in force, or what stood there before, if that is ours."""
    handler: Any = signal.getsignal(number)
    for each, ours, theirs in reversed(_handlers):
        if (each, ours) == (number, handler):
            handler = theirs
    return handler


def end_child(error: BaseException | None) -> NoReturn:
    """A child that comes out of the handler it was forked in has no loop to go on with: it ends there.

    Called where a request ends in another generation than it began in.
    """
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        traceback.print_exception(error)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)
