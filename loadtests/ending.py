"""How a measurement ends early: whoever ends it by Ctrl-C, SIGTERM or SIGHUP ends its servers as well.

Not how one server is ended (`servers.py`).

Invariant: the first signal raises, and those that follow do not interrupt the ending.
"""

import signal
import sys
from collections.abc import Callable
from types import FrameType

# By the last two, of `timeout` and of a closed terminal, Python would end at once, and leave the servers.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """Somebody ended it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


def by_signals() -> None:
    """Each of them raises `Ended`; what is ignored, as by nohup, stays so."""
    for each in SIGNALS:
        if signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, _end)


def run(main: Callable[[], None]) -> None:
    """A measurement that has nothing more to tell when it is ended."""
    by_signals()
    try:
        main()
    except Ended as ended:
        print(f"ended by {ended}: what is printed above is not all", file=sys.stderr)
        sys.exit(ended.code)


def _end(number: int, _frame: FrameType | None) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Ended(number)
