"""What happens when the application forks: parent and child stay sane.

The child has none of our threads. It must not hold our clients and ports, and a signal to it is its own.

Invariant: between the fork and the child's own handlers no signal is lost: they are blocked meanwhile.
"""

import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from bridgehead import own_handlers
from bridgehead._native import forget_descriptors

_ENDING = (signal.SIGINT, signal.SIGTERM)

_registered = False
_mask: set[int] = set()
_sockets: set[socket.socket] = set()
_handlers: list[tuple[int, object, Any]] = []
_child = False


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
    global _child
    _child = True
    forget_descriptors()
    own_handlers.forget()
    for each in _sockets:
        each.close()
    for number in _ENDING:
        # The system's side of these is our control thread's, which the child has not got; Python's side is
        # what the application thinks is in force.
        with suppress(ValueError, TypeError):
            signal.signal(number, _theirs(number) or signal.SIG_DFL)
    _unblock()


def _theirs(number: int) -> Any:
    """The handler that is in force, or what stood there before, if that is ours."""
    handler: Any = signal.getsignal(number)
    for each, ours, theirs in reversed(_handlers):
        if (each, ours) == (number, handler):
            handler = theirs
    return handler


def end_child(error: BaseException | None) -> None:
    """A child that comes out of the handler it was forked in has no loop to go on with: it ends there.

    Called wherever a request ends, and does nothing in the parent.
    """
    if not _child:
        return
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
