"""What holds a loop that does not serve: while its application starts, and while it ends.

Not who looks (`vigil.rs`), and not while it serves: the network has that done.

Invariant: nobody looks any more once the block is left.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bridgehead._native import Sheet, Vigil
from bridgehead.slow_steps import Files, files

if TYPE_CHECKING:
    from bridgehead.diagnostics import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Whose loop it is, and who is told; read by Rust."""

    event_loop: asyncio.AbstractEventLoop
    sheet: Sheet
    slow_step: float
    census: Callable[[], tuple[int, tuple[int, int, int] | None]]
    place: Callable[[], tuple[str, str]]
    slow: Callable[[float, str, tuple[str, str] | None, bool, str | None], tuple[str, str]]
    over: Callable[[float, str, tuple[str, str]], None]
    files: Files


@contextmanager
def over(watched: "Watched", slow_step: float, what: str) -> Iterator[None]:
    """Steps of this that hold the running loop for longer are told of meanwhile; 0: nobody looks."""
    if not slow_step:
        yield
        return
    vigil = Vigil(
        Attention(
            event_loop=asyncio.get_running_loop(),
            sheet=watched.sheet,
            slow_step=slow_step,
            census=watched.count,
            place=watched.steps.place,
            slow=watched.steps.tell,
            over=watched.steps.over,
            files=files(),
        )
    )
    watched.steps.during = what
    try:
        yield
    finally:
        vigil.close()
        watched.steps.during = ""
