"""Has a loop woken by each signal that Python has a handler for.

Python runs a handler between two steps of its own. A signal that comes just before the loop goes to wait, or
in another thread, interrupts no wait, and its handler would run with the loop's next event. uvloop sees to
that by itself.

Not the handlers.

Invariant: whoever is woken by signals already stays so, and the last who lets go leaves nothing behind.
"""

import asyncio
import signal
import socket
import threading
from contextlib import suppress


class _Pair:
    """What the system writes a byte into for each signal, and what the loop reads it from."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.holders = 0
        self._loop = loop
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        loop.add_reader(self._receiver, self._empty)
        self.ask()

    def ask(self) -> None:
        before = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        if before not in (-1, self._sender.fileno()):
            # Somebody is woken already: asyncio itself, for a handler of the application's, or uvloop.
            signal.set_wakeup_fd(before)

    def close(self) -> None:
        current = signal.set_wakeup_fd(-1)
        if current not in (-1, self._sender.fileno()):
            signal.set_wakeup_fd(current)
        with suppress(RuntimeError):  # the loop is closed
            self._loop.remove_reader(self._receiver)
        self._receiver.close()
        self._sender.close()

    def _empty(self) -> None:
        with suppress(BlockingIOError):
            self._receiver.recv(4096)


# The main thread's alone: no other may have itself woken.
_held: dict[asyncio.AbstractEventLoop, _Pair] = {}


def hold(loop: asyncio.AbstractEventLoop) -> None:
    """Have it woken from here on, if it runs on the main thread; several servers may ask for it."""
    if threading.current_thread() is threading.main_thread():
        pair = _held.get(loop) or _held.setdefault(loop, _Pair(loop))
        pair.holders += 1


def renew(loop: asyncio.AbstractEventLoop) -> None:
    """Whoever was woken instead may be so no more."""
    pair = _held.get(loop)
    if pair is not None and threading.current_thread() is threading.main_thread():
        pair.ask()


def let_go(loop: asyncio.AbstractEventLoop) -> None:
    """As often as it was held."""
    pair = _held.get(loop)
    if pair is not None and threading.current_thread() is threading.main_thread():
        pair.holders -= 1
        if pair.holders == 0:
            del _held[loop]
            pair.close()
