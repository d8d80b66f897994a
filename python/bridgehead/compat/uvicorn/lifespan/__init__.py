"""`uvicorn.lifespan`: `on` and `off`."""

from bridgehead.compat.later import modules

__getattr__ = modules(__name__, "off", "on")
