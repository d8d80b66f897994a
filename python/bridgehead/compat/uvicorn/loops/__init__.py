"""`uvicorn.loops`: factories of event loops, by the names of their modules."""

from bridgehead.compat.later import modules

__getattr__ = modules(__name__, "asyncio", "auto", "uvloop", "zuvloop")
