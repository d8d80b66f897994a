"""The base of uvicorn's protocol classes here: they can be imported and named, and not be put to work.

Invariant: who makes one is told why there is none.
"""

import asyncio
from typing import Any


class Foreign(asyncio.Protocol):
    """A protocol of Python's, which nothing here would feed."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} is a protocol of uvicorn's; under Bridgehead HTTP and WebSockets are "
            "spoken in Rust. What it did belongs into a middleware"
        )


class ForeignCycle:
    """One request of such a protocol's, which is never made."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(
            "RequestResponseCycle is of uvicorn's protocols; under Bridgehead HTTP is spoken in Rust. "
            "What it did belongs into a middleware"
        )
