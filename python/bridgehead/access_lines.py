"""Who takes one server's access lines: settled at its start, and anew whenever the loggers change.

Not what a line says (`reports.py`), and not how loggers are judged (`loggers.py`).

Invariant: a request costs the same whether loggers may change or not; a change costs one look.
"""

from collections.abc import Callable

from bridgehead import logger_changes, loggers
from bridgehead.config import Config
from bridgehead.loggers import Route

# Rust knows these words.
TAKERS = {Route.NOBODY: "nobody", Route.RUST: "descriptor", Route.LOGGERS: "loggers"}


class AccessLines:
    """From its start to `leave()`: has `turn` called with whoever takes them from here on."""

    def __init__(self, config: Config, turn: Callable[[str], object]) -> None:
        self._config, self._turn = config, turn
        self._route: Route | None = None
        if config.access_log:
            logger_changes.follow(self._look)
            self._look()

    def leave(self) -> None:
        """Nobody takes any more."""
        logger_changes.leave(self._look)

    def _look(self) -> None:
        logger_changes.watch(loggers.heeded())
        route = loggers.access_route(self._config)
        if route is not self._route:
            self._turn(TAKERS[route])
            self._route = route
