"""An epoll set of the application's own that still has descriptors which were closed: their duplicates live.

Run it: `serve stale_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import fcntl
import os
import select

from kit import Receive, Routes, Scope, Send, answer

routes = app = Routes()

_set = select.epoll()
_closed = [os.eventfd(1) for _ in range(60)]
for _number in _closed:
    _set.register(_number, select.EPOLLIN)
_duplicates = [fcntl.fcntl(_number, fcntl.F_DUPFD_CLOEXEC, 200) for _number in _closed]
for _number in _closed:
    os.close(_number)


@routes.at("empty")
async def empty(scope: Scope, receive: Receive, send: Send) -> None:
    """From here on nothing in the set is ready."""
    for number in _duplicates:
        os.read(number, 8)
    await answer(send, b"empty")
