"""One request's coroutine: runs the application, and says what became of it.

Not the messages (Rust judges those) and not the task (the stepper makes it).

Invariant: nothing that an application raises goes further than here; only a cancellation from outside does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

from bridgehead import forks, log
from bridgehead._native import ClientDisconnected, Http
from bridgehead.errors import OUR_FOLDER
from bridgehead.whereabouts import asked_in

Application = Callable[..., Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Frameworks turn our exception, or a client's leaving, into exceptions of their own: these are Starlette's.
_DEPARTURES = frozenset({"ClientDisconnect", "ClientDisconnected", "WebSocketDisconnect"})


async def answer(
    application: Application, scope: dict[str, Any], receive: Receive, send: Send, http: Http
) -> None:
    """Run the application for one request."""
    generation = forks.generation
    try:
        await application(scope, receive, send)
    except BaseException as error:  # uvicorn catches SystemExit here too: a request ends no server
        if forks.generation != generation:
            forks.end_child(error)
        cancelled = is_cancellation(error)
        departed = (cancelled and http.stopping) or (_is_departure(error) and http.gone)
        try:
            if not departed:
                log.application_error(below(error), http.names)
        finally:
            # Whatever a handler of the application's logging does.
            http.settle(failed=True, departed=departed)
        if cancelled:
            raise
    else:
        if forks.generation != generation:
            forks.end_child(None)
        lack = http.settle()
        if lack:
            log.misbehaviour(f"the application {lack}", http.names)


def answer_by_name(
    application: Application, scope: dict[str, Any], receive: Receive, send: Send, http: Http
) -> Coroutine[Any, Any, None]:
    """The same in asyncio's debug mode, whose lines then have the request in its task's coroutine."""
    coroutine = answer(application, scope, receive, send, http)
    coroutine.__qualname__ = f"answer to {asked_in(scope)}"  # type: ignore[attr-defined]
    return coroutine


def is_cancellation(error: BaseException) -> bool:
    """Whether the running task was told to end: an application may raise `CancelledError` of itself, too."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)


def below(error: BaseException) -> BaseException:
    """The error without our own frames on top, which say nothing to the application's author."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OUR_FOLDER):
        trace = trace.tb_next
    return error.with_traceback(trace)


def _is_departure(error: BaseException) -> bool:
    """Whether this only says that the client has left."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_departure(each) for each in error.exceptions)
    return isinstance(error, ClientDisconnected) or type(error).__name__ in _DEPARTURES
