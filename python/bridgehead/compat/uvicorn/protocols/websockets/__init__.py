"""`uvicorn.protocols.websockets`: names to import."""

from bridgehead.compat.later import modules

__getattr__ = modules(__name__, "auto", "websockets_impl", "websockets_sansio_impl", "wsproto_impl")
