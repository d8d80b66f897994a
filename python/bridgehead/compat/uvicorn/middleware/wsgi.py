"""`uvicorn.middleware.wsgi`: a WSGI application as an ASGI 3 one.

Invariant: it is `--interface wsgi`, whose threads are a2wsgi's.
"""

import io
import sys
from typing import Any

from bridgehead.wsgi import from_wsgi

_NAMED = {"content-length": "CONTENT_LENGTH", "content-type": "CONTENT_TYPE"}


class WSGIMiddleware:
    """Runs the application in threads."""

    def __init__(self, app: Any, workers: int = 10) -> None:
        self.app = app
        self._adapted = from_wsgi(app, workers)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As any ASGI 3 application is called."""
        await self._adapted(scope, receive, send)


class WSGIResponder:
    """uvicorn's threads, which nothing here would feed."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("WSGIResponder is uvicorn's own way of running WSGI; use WSGIMiddleware(app)")


def build_environ(scope: Any, message: Any, body: io.BytesIO) -> dict[str, Any]:  # noqa: ARG001 - uvicorn's
    """A scope as WSGI has it, for programs that adapt by themselves."""
    mounted = scope.get("root_path", "").encode().decode("latin-1")
    server, client = scope.get("server") or ("localhost", 80), scope.get("client")
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": mounted,
        "PATH_INFO": scope["path"].encode().decode("latin-1").removeprefix(mounted),
        "QUERY_STRING": scope["query_string"].decode("ascii"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": server[1],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": body,
        "wsgi.errors": sys.stdout,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    if client is not None:
        environ["REMOTE_ADDR"] = client[0]
    for each, value in scope.get("headers", []):
        name = each.decode("latin-1")
        key = _NAMED.get(name) or f"HTTP_{name.upper().replace('-', '_')}"
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    return environ
