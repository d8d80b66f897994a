"""asyncio's selector in the fused runtime: where the loop would poll, it serves the network.

Not the turn itself (`turner.rs`). Until a server is attached, and after, this is a plain selector.

Invariant: what the loop is given is what it would have been given.
"""

import asyncio
import selectors
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

_Events = list[tuple[selectors.SelectorKey, int]]


class FusedSelector(selectors.EpollSelector):
    """Waits for the loop's descriptors and for the network at once."""

    def __init__(self) -> None:
        super().__init__()
        self._serve: Callable[[float], bool] | None = None
        self._signals: tuple[socket.socket, socket.socket] | None = None

    def attach(self, loop: asyncio.AbstractEventLoop, serve: Callable[[float], bool]) -> None:
        """From here on, polling serves; `serve(seconds)` says whether a descriptor of the loop's is ready."""
        self._serve = serve
        if threading.current_thread() is threading.main_thread():
            self._watch_signals(loop)

    def detach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From here on, this is a plain selector."""
        self._serve = None
        if self._signals is not None:
            receiver, sender = self._signals
            current = signal.set_wakeup_fd(-1)
            if current not in (-1, sender.fileno()):
                signal.set_wakeup_fd(current)
            del loop.remove_signal_handler
            loop.remove_reader(receiver)
            receiver.close()
            sender.close()
            self._signals = None

    def select(self, timeout: float | None = None) -> _Events:
        """What is ready; waits for `timeout` seconds, endlessly for None."""
        if self._serve is None:
            return super().select(timeout)
        if self._serve(-1.0 if timeout is None else max(timeout, 0.0)):
            return super().select(0)
        return []

    def _watch_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        """A signal interrupts a poll of Python's, not one of Tokio's: let it be something to wake up for."""
        receiver, sender = socket.socketpair()
        receiver.setblocking(False)
        sender.setblocking(False)
        loop.add_reader(receiver, _empty, receiver)
        self._signals = (receiver, sender)
        _ask_to_be_woken(sender)
        remove = loop.remove_signal_handler

        def remove_signal_handler(sig: int) -> bool:
            """asyncio's own: with its last handler goes the wakeup, which is ours as well."""
            removed = remove(sig)
            _ask_to_be_woken(sender)
            return removed

        # No loop of anybody else's: it was made for this selector.
        loop.remove_signal_handler = remove_signal_handler  # type: ignore[method-assign]


def _ask_to_be_woken(sender: socket.socket) -> None:
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    if before not in (-1, sender.fileno()):
        # Somebody is woken already: asyncio itself, for a handler of the application's.
        signal.set_wakeup_fd(before)


def _empty(receiver: socket.socket) -> None:
    with suppress(BlockingIOError):
        receiver.recv(4096)
