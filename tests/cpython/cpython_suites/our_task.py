"""The task of a request, as a class that takes a coroutine: what CPython's tests want to make.

Not how requests have theirs: their first step is taken at once, here the loop takes it, unless the test
wants an eager one.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

from bridgehead._native import Driver
from bridgehead.private_names import task_names
from bridgehead.request_task import RequestTask


class OurTask(RequestTask):
    """Driven by Rust."""

    def __init__(
        self,
        coro: Any,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        context: contextvars.Context | None = None,
        **keywords: Any,
    ) -> None:
        # What is no coroutine is refused by asyncio's own task, and so is a loop that is missing.
        if asyncio.iscoroutine(coro):
            loop = asyncio.get_event_loop() if loop is None else loop
            context = contextvars.copy_context() if context is None else context
            coro = Driver(loop, task_names()).park(coro, context)
        super().__init__(coro, loop=loop, context=context, **keywords)
        if created := getattr(self, "_source_traceback", None):
            # In debug mode a task knows where it was made: not here.
            created.pop()


# As tasks show themselves in logs.
OurTask.__name__ = OurTask.__qualname__ = "Task"
