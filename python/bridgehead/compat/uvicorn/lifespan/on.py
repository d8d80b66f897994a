"""`uvicorn.lifespan.on`: an application's lifespan that says how it went, instead of raising.

Not how it is run (`bridgehead.lifespan`).

Invariant: after a failed startup `should_exit` is true, and the reason has been logged.
"""

from typing import Any

from bridgehead import log
from bridgehead.compat.uvicorn._types import Message
from bridgehead.compat.uvicorn.config import Config
from bridgehead.errors import StartError
from bridgehead.server_config import ServerLifespan

LifespanReceiveMessage = Message
LifespanSendMessage = Message
STATE_TRANSITION_ERROR = "Got invalid state transition on lifespan protocol."


class LifespanOn(ServerLifespan):
    """Also driven without a server, by `startup()` and `shutdown()`."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.config = config
        self.logger = log.logger()
        self.startup_failed = False
        self.shutdown_failed = False
        self.should_exit = False

    @property
    def error_occurred(self) -> bool:
        """Whether the application's call has ended in an exception."""
        return self._error is not None

    async def startup(self) -> None:
        """Run the application's startup."""
        try:
            await super().startup()
        except StartError as problem:
            if problem.detail:
                self.logger.error("%s", problem.detail.strip())
            self.logger.error("Application startup failed. Exiting.")
            self.startup_failed = True
            self.should_exit = True

    async def shutdown(self) -> None:
        """Run the application's shutdown."""
        await super().shutdown()
        self.shutdown_failed = self.is_broken
        self.should_exit = self.should_exit or self.shutdown_failed

    async def main(self) -> None:
        """The application's call, from its startup to its shutdown; some wrap it."""
        await super()._call()

    async def receive(self) -> Any:
        """What the application hears next; some replace it."""
        return await super()._receive()

    async def send(self, message: Any) -> None:
        """What the application says."""
        await super()._send(message)

    async def _call(self) -> None:
        await self.main()

    async def _receive(self) -> Any:
        return await self.receive()

    async def _send(self, message: Any) -> None:
        await self.send(message)
