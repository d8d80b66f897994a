"""Runs one asynchronous test in the handler of a request: `POST /run/MODULE?Class.method`.

What `IsolatedAsyncioTestCase` does by a runner of its own happens here in the task of the request: setting
up, the test, its cleanups. A test that is no coroutine function turns a loop of its own and is not run here.
"""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from cpython_suites.outcomes import describe, name_of, tests_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@functools.cache
def tests(module: str) -> dict[str, unittest.IsolatedAsyncioTestCase]:
    """The asynchronous tests of a module by their names; its `setUpModule` has run."""
    return {
        name_of(test): test
        for test in tests_of(module, lambda kind: issubclass(kind, unittest.IsolatedAsyncioTestCase))
        if isinstance(test, unittest.IsolatedAsyncioTestCase) and is_asynchronous(test)
    }


def is_asynchronous(test: unittest.TestCase) -> bool:
    return inspect.iscoroutinefunction(method_of(test))


def method_of(test: unittest.TestCase) -> Any:
    return getattr(test, test._testMethodName)


async def outcome_of(test: unittest.IsolatedAsyncioTestCase) -> str:
    """As `TestCase.run`, in the running task."""
    method = method_of(test)
    marked: tuple[Any, Any] = (type(test), method)
    for each in marked:
        if getattr(each, "__unittest_skip__", False):
            return f"skipped: {each.__unittest_skip_why__}"
    expects_failure = getattr(method, "__unittest_expecting_failure__", False)
    problems: list[BaseException] = []
    await attempt(problems, test.setUp)
    if not problems:
        await attempt(problems, test.asyncSetUp)
    if not problems:
        await attempt(problems, method)
        await attempt(problems, test.asyncTearDown)
        await attempt(problems, test.tearDown)
    cleanups: Any = test._cleanups  # type: ignore[attr-defined]
    while cleanups:
        function, arguments, keywords = cleanups.pop()
        await attempt(problems, functools.partial(function, *arguments, **keywords))
    if not problems:
        return "passed against expectation" if expects_failure else "passed"
    problem = problems[0]
    if isinstance(problem, unittest.SkipTest):
        return f"skipped: {problem}"
    if expects_failure:
        return "failed as expected"
    return f"failed: {describe((type(problem), problem, None))}"


async def attempt(problems: list[BaseException], function: Callable[[], Any]) -> None:
    try:
        made = function()
        if inspect.isawaitable(made):
            await made
    except BaseException as problem:  # of every kind: that is what some of them are about
        problems.append(problem)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The application."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    module, name = scope["path"].removeprefix("/run/"), scope["query_string"].decode()
    # After a wait for the network, as most of a handler is.
    while (await receive()).get("more_body"):
        pass
    body = (await outcome_of(tests(module)[name])).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
