"""Process 1 of a container: the server's parent, which hands signals on and takes orphans off the list.

Not the parent of workers, which does that itself (`supervisor/orphans.py`). The child is forked before there
is a thread, a log file or anything of the application's, and this process imports nothing more.

Invariant: a signal reaches the server once, and the container ends when the server does, with its exit code.
"""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

_STDIN, _STDERR = 0, 2
_TASKS = "/proc/self/task"
_DESCRIPTORS = "/proc/self/fd"
# Who is told how the server fares, or has opened its sockets, knows it by its number.
_MANAGED = ("NOTIFY_SOCKET", "LISTEN_PID")
# What a fault of this process's own raises; blocked, it would be the end without a word.
_FAULTS = frozenset(
    {signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGTRAP}
)


def stay(environ: Mapping[str, str]) -> None:
    """Return in a child, and be process 1; or return in this process, where that would be of harm."""
    if any(name in environ for name in _MANAGED) or not _is_alone():
        return
    watched = signal.valid_signals() - _FAULTS
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    sys.stdout.flush()
    sys.stderr.flush()
    is_told, tells = os.pipe()
    child = os.fork()
    if child:
        os.close(tells)
        has_terminal = os.read(is_told, 1) == b"t"
        _let_go()
        _wait_for(child, watched, has_terminal=has_terminal)
    os.close(is_told)
    with suppress(OSError):  # its reader is gone
        os.write(tells, b"t" if _lead() else b"-")
    os.close(tells)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_alone() -> bool:
    """Whether there is no other thread, which a child would not have."""
    try:
        return len(os.listdir(_TASKS)) == 1
    except OSError:
        return False


def _let_go() -> None:
    """A listening socket that was passed to us ends with the server."""
    # Not a range: containers may open a billion, and not every system closes them in one call.
    for name in os.listdir(_DESCRIPTORS):
        if int(name) > _STDERR:
            with suppress(OSError):  # that of the list itself
                os.close(int(name))


def _lead() -> bool:
    """In the child: be a group of its own, to which the terminal belongs if there is one; whether it does.

    Ctrl+C is for that group, and so comes once.
    """
    try:
        os.setpgid(0, 0)
        if os.isatty(_STDIN):
            os.tcsetpgrp(_STDIN, os.getpgrp())  # SIGTTOU is blocked
            return True
    except OSError:
        pass
    return False


def _wait_for(child: int, watched: set[signal.Signals], *, has_terminal: bool) -> NoReturn:
    while True:
        told = signal.sigwaitinfo(watched)
        if told.si_signo == signal.SIGCHLD:
            _reap(child)
        elif not (has_terminal and told.si_code > 0):  # by the terminal, which has told the child itself
            with suppress(ProcessLookupError):
                os.kill(child, told.si_signo)


def _reap(child: int) -> None:
    """Take all that have ended off the list, and end with the server."""
    with suppress(ChildProcessError):
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if ended == 0:
                return
            if os.WIFSTOPPED(status):
                if ended == child and os.WSTOPSIG(status) == signal.SIGTSTP:
                    os.killpg(child, signal.SIGCONT)  # Ctrl+Z: there is no shell that would do it
            elif ended == child:
                code = os.waitstatus_to_exitcode(status)
                os._exit(code if code >= 0 else 128 - code)
