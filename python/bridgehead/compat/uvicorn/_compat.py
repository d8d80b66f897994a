"""`uvicorn._compat`: how workers of gunicorn's that others have written run a server.

Invariant: the loop is made by the factory, and closed.
"""

import asyncio
from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction as iscoroutinefunction
from typing import Any, TypeVar

T = TypeVar("T")


def asyncio_run(
    main: Coroutine[Any, Any, T],
    *,
    debug: bool = False,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Python's `asyncio.run`, which takes a factory since 3.12."""
    with asyncio.Runner(debug=debug, loop_factory=loop_factory) as runner:
        return runner.run(main)
