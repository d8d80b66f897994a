"""`uvicorn.protocols`: names that programs import; HTTP and WebSockets themselves are spoken in Rust."""

from bridgehead.compat.later import modules

__getattr__ = modules(__name__, "http", "utils", "websockets")
