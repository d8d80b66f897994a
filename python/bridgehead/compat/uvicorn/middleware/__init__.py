"""`uvicorn.middleware`: applications around applications, for those who add them by themselves."""

from bridgehead.compat.later import modules

__getattr__ = modules(__name__, "asgi2", "message_logger", "proxy_headers", "wsgi")
