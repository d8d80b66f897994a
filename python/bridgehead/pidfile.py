"""The file that says which process to signal.

Not what keeps a second server off a port (`sockets.py`). That its server lives is told by a lock, not by the
number, which may be somebody else's by now, and in a container is 1 each time.

Invariant: the file of a server that lives is neither replaced nor removed by another one.
"""

import fcntl
import os
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from bridgehead import log
from bridgehead.errors import StartError

_TRIES = 16  # when others start at the same moment
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL
_LONGEST = 32  # bytes of a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Pidfile:
    """One that this process has written, and holds by a lock.

    The lock is the process's own: what it forks does not have it, so that nothing that outlives it keeps it.
    """

    path: str
    process: int
    descriptor: int


def refuse_another(path: str | None) -> None:
    """Say at once that another server has this file; what else is wrong is said when it is written."""
    with suppress(OSError):
        left = None if path is None else _left(path)
        if left is not None:
            os.close(left)


def write(path: str | None) -> Pidfile | None:
    """Whole or not at all; nothing if there is to be none."""
    if path is None:
        return None
    made = f"{path}.{os.getpid()}.{time.monotonic_ns()}"
    try:
        with ExitStack() as undo:
            descriptor = os.open(made, _NEW, 0o666)
            undo.callback(os.close, descriptor)
            undo.callback(os.unlink, made)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            if not _lock(descriptor, fcntl.LOCK_EX):
                sentence = "--pidfile %r cannot be locked there: a second server would replace it."
                log.logger().warning(sentence, path)
            _put(made, path)
            undo.pop_all()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise StartError(f"--pidfile {path!r} cannot be written: {reason}", "choose another place") from None
    return Pidfile(path=path, process=os.getpid(), descriptor=descriptor)


def write_again(path: str | None) -> Pidfile | None:
    """After another program in this process, with which its lock has ended. A server that serves stays."""
    try:
        return write(path)
    except StartError as problem:
        log.logger().warning("%s. This server goes on without one.", problem.message)
        return None


def remove(file: Pidfile | None) -> None:
    """If it is still this process's."""
    if file is None or file.process != os.getpid():
        return
    with suppress(OSError, ValueError):
        if _is_at(file.descriptor, file.path) and _number_in(file.descriptor) == file.process:
            os.unlink(file.path)
    with suppress(OSError):
        os.close(file.descriptor)


def _put(made: str, path: str) -> None:
    """Give the new file its name, unless another server has that."""
    for _ in range(_TRIES):
        left = _left(path)
        if left is None:
            try:
                os.link(made, path)
            except FileExistsError:  # another was quicker
                continue
            except OSError:  # a file system without links
                break
            os.unlink(made)
            return
        try:
            if _is_at(left, path):
                os.replace(made, path)
                return
        finally:
            os.close(left)
    os.replace(made, path)


def _left(path: str) -> int | None:
    """The file that a server has left which is gone, locked until it is closed; None: there is none."""
    with ExitStack() as undo:
        kind = fcntl.LOCK_EX
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except PermissionError:  # another user's
            descriptor, kind = os.open(path, os.O_RDONLY | os.O_NONBLOCK), fcntl.LOCK_SH
        undo.callback(os.close, descriptor)
        try:
            _lock(descriptor, kind)
        except BlockingIOError:
            raise _taken(path, descriptor) from None
        undo.pop_all()
    return descriptor


def _taken(path: str, descriptor: int) -> StartError:
    try:
        number = _number_in(descriptor)
    except (OSError, ValueError):  # somebody else's lock
        return StartError(f"--pidfile {path!r} is locked by another process", "choose another file")
    message = f"--pidfile {path!r} is that of a server that runs: process {number}"
    return StartError(message, f"stop that first (kill {number}), or choose another file")


def _lock(descriptor: int, kind: int) -> bool:
    """Whether it could be had; False where nothing can be locked."""
    try:
        fcntl.lockf(descriptor, kind | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # POSIX has both for a lock that another process has
        raise BlockingIOError from None
    except OSError:
        return False
    return True


def _is_at(descriptor: int, path: str) -> bool:
    """Whether the file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _number_in(descriptor: int) -> int:
    return int(os.pread(descriptor, _LONGEST, 0))
