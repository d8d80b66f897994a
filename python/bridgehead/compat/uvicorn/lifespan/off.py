"""`uvicorn.lifespan.off`: no lifespan, whatever the configuration says.

Invariant: the application is not called.
"""

from typing import Any

from bridgehead.compat.uvicorn.config import Config


class LifespanOff:
    """Starts and ends nothing."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.should_exit = False
        self.state: dict[str, Any] = {}

    async def startup(self) -> None:
        """Nothing is started."""

    async def shutdown(self) -> None:
        """Nothing is ended."""
