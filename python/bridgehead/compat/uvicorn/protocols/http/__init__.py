"""`uvicorn.protocols.http`: names to import."""

from bridgehead.compat.later import modules

__getattr__ = modules(__name__, "auto", "flow_control", "h11_impl", "httptools_impl", "zttp_impl")
