"""The file of a Unix socket: whose it is, when it may be replaced, and that it goes with its server.

Not the socket (`sockets.py`).

Invariant: no live server's file is removed. One that is bound and does not listen yet looks dead, so of those
who take a path in one directory only one is at work at a time.
"""

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from bridgehead.errors import StartError

_LONGEST = 5.0  # seconds to wait for another's start, which takes milliseconds: anybody may lock a directory
_PAUSE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketFile:
    """A file that our bind made; known by its inode, as a successor may have replaced it."""

    path: str
    device: int
    inode: int

    @classmethod
    def at(cls, path: str) -> Self:
        """The one that was just made."""
        made = os.lstat(path)
        return cls(path=os.path.abspath(path), device=made.st_dev, inode=made.st_ino)

    def remove(self) -> None:
        """Delete it if it is still the one we made."""
        with suppress(OSError):
            now = os.lstat(self.path)
            if (now.st_dev, now.st_ino) == (self.device, self.inode):
                os.unlink(self.path)


@contextmanager
def alone_beside(path: str) -> Iterator[None]:
    """No other server of ours takes a path in this directory meanwhile.

    By a lock of the directory, which leaves no file behind and ends with its process. Where it cannot be had,
    the path is taken without it.
    """
    try:
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # what is wrong with it is said when the socket is bound
        yield
        return
    try:
        _lock(directory)
        yield
    finally:
        # Not by closing it alone: a child that was forked meanwhile has it as well.
        with suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_UN)
        os.close(directory)


def _lock(directory: int) -> None:
    end = time.monotonic() + _LONGEST
    while time.monotonic() < end:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:  # a file system without locks
            return
        else:
            return


def make_room(path: str) -> None:
    """Remove the socket file of a dead server; refuse anything else that is in the way."""
    if is_left_over(path):
        os.unlink(path)


def is_left_over(path: str) -> bool:
    """Whether a dead server's is in the way; anything else is refused."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise StartError(
            f"{path!r} exists and is not a socket", "choose another path, or move that file away"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a live server with a full backlog answers EAGAIN at once
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except FileNotFoundError:  # it has just gone
            return False
        except (BlockingIOError, OSError) as problem:
            if problem.errno not in {errno.EAGAIN, errno.EPROTOTYPE}:
                raise
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
