"""`uvicorn.lifespan.off`: no lifespan, whatever the configuration says.

Invariant: the application is not called.
"""

from bridgehead.server_config import ServerLifespan


class LifespanOff(ServerLifespan):
    """Starts and ends nothing. A server takes it as `config.lifespan_class`."""

    should_exit = False

    async def startup(self) -> None:
        """Nothing is started."""

    async def shutdown(self) -> None:
        """Nothing is ended."""
