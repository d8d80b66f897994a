"""asyncio's selector in the fused runtime: where the loop would poll, it serves the network.

Not the turn itself (`turner.rs`). Until a server is attached, and after, this is a plain selector.

Invariant: what the loop is given is what it would have been given.
"""

import asyncio
import selectors
from collections.abc import Callable
from dataclasses import dataclass

from bridgehead import forks, signal_wake
from bridgehead.loop_trial import turnable
from bridgehead.private_names import LoopNames

_Events = list[tuple[selectors.SelectorKey, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """What is polled with the network, and what the loop is asked for between polls; read by Rust."""

    descriptor: int
    names: LoopNames


class FusedSelector(selectors.EpollSelector):
    """Waits for the loop's descriptors and for the network at once."""

    def __init__(self) -> None:
        super().__init__()
        self._serve: Callable[[float], bool] | None = None

    def polled(self) -> Polled | None:
        """What Rust needs to serve in the poll's place; None: this asyncio is not known well enough."""
        names = turnable()
        return None if names is None else Polled(descriptor=self.fileno(), names=names)

    def attach(self, loop: asyncio.AbstractEventLoop, serve: Callable[[float], bool]) -> None:
        """From here on, polling serves; `serve(seconds)` says whether a descriptor of the loop's is ready."""
        self._serve = serve
        forks.in_child(self._become_plain)
        # A signal interrupts a poll of Python's, not one of Tokio's.
        signal_wake.hold(loop)
        self._keep_awake(loop)

    def detach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From here on, this is a plain selector."""
        self._become_plain()
        forks.not_in_child(self._become_plain)
        if "remove_signal_handler" in vars(loop):
            del loop.remove_signal_handler
        signal_wake.let_go(loop)

    def _become_plain(self) -> None:
        # A forked child has none of the threads that may have held the network just then.
        self._serve = None

    def select(self, timeout: float | None = None) -> _Events:
        """What is ready; waits for `timeout` seconds, endlessly for None."""
        if self._serve is None:
            return super().select(timeout)
        if self._serve(-1.0 if timeout is None else max(timeout, 0.0)):
            return super().select(0)
        return []

    def _keep_awake(self, loop: asyncio.AbstractEventLoop) -> None:
        """With asyncio's last handler goes the wakeup, which is ours as well."""
        remove = loop.remove_signal_handler

        def remove_signal_handler(sig: int) -> bool:
            removed = remove(sig)
            signal_wake.renew(loop)
            return removed

        # No loop of anybody else's: it was made for this selector.
        loop.remove_signal_handler = remove_signal_handler  # type: ignore[method-assign]
