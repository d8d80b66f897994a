"""What uvicorn's own tests take for granted, for the tests beside them: private names and protocols.

Not a part of `bridgehead.compat`: nothing but those tests asks for these, and a protocol is refused there.
Invariant: a test that is asked for with each of uvicorn's protocols runs once, with the one that there is.
"""

from __future__ import annotations

import importlib

import pytest

from bridgehead import compat

compat.install()

from uvicorn.middleware import wsgi  # noqa: E402
from uvicorn.supervisors import basereload  # noqa: E402

wsgi._WSGIMiddleware = wsgi.WSGIMiddleware
basereload._display_path = str

# A configuration is given one of these; `auto` is how it would choose by itself.
PROTOCOLS = {
    "ws_protocol_cls": [
        "uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol",
        "uvicorn.protocols.websockets.wsproto_impl:WSProtocol",
    ],
    "http_protocol_cls": [
        "uvicorn.protocols.http.h11_impl:H11Protocol",
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol",
        "uvicorn.protocols.http.zttp_impl:ZttpProtocol",
    ],
}
for place, _, name in (path.partition(":") for paths in PROTOCOLS.values() for path in paths):
    if not place.endswith("zttp_impl"):
        setattr(importlib.import_module(place), name, "auto")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test with the first of the protocols alone: the others are the same here."""
    items[:] = [item for item in items if not _again(item)]


def _again(item: pytest.Item) -> bool:
    given = getattr(item, "callspec", None)
    return given is not None and any(
        given.params.get(name, first) != first for name, (first, *_) in PROTOCOLS.items()
    )
