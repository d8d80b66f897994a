"""Starlette's `BaseHTTPMiddleware`, and FastAPI's dependencies and generators, called by the case itself.

Both run handlers beside the task that calls the application: in groups of anyio's, and in threads.
"""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from typing import Annotated, Any

from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fidelity.account import Seen
from fidelity.registry import case
from fidelity.turns import soon

Message = MutableMapping[str, Any]
App = Callable[..., Awaitable[None]]
Handler = Callable[[Request], Awaitable[Response]]

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")


class Client:
    """Calls an application, and takes down what it sends. `leaves` says when the client is gone."""

    def __init__(self, seen: Seen, spec: str = "2.4") -> None:
        self.seen = seen
        self.spec = spec
        self.leaves = asyncio.Event()
        self._asked = False

    async def ask(self, app: App, path: str) -> None:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": self.spec},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"test")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "state": {},
        }
        await app(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"body", "more_body": False}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.seen("sent", message.get("status"), message.get("body"), message.get("more_body"))
        await asyncio.sleep(0)


def wrapped(seen: Seen, handler: Handler) -> App:
    """The handler, in an application that has the middleware twice."""

    def layer(name: str) -> Middleware:
        async def dispatch(request: Request, call_next: Handler) -> Response:
            seen(name, "before", variable.get(), asyncio.current_task() is request.scope["outermost"])
            variable.set(name)
            try:
                response = await call_next(request)
            except BaseException as error:
                seen(name, "raised", type(error))
                raise
            seen(name, "after", response.status_code, variable.get())
            return response

        return Middleware(BaseHTTPMiddleware, dispatch=dispatch)

    starlette = Starlette(
        routes=[Route("/", handler, methods=["POST"])], middleware=[layer("outer"), layer("inner")]
    )

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await starlette({**scope, "outermost": asyncio.current_task()}, receive, send)

    return app


@case()
async def middleware_around_an_answer(seen: Seen) -> None:
    async def handle(request: Request) -> Response:
        seen("handler", variable.get(), asyncio.current_task() is request.scope["outermost"])
        variable.set("handler")
        return PlainTextResponse(await request.body())

    variable.set("case")
    await Client(seen).ask(wrapped(seen, handle), "/")
    seen(variable.get())


@case()
async def middleware_around_a_stream(seen: Seen) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        try:
            for number in range(3):
                yield b"%d" % number
                await asyncio.sleep(0)
        finally:
            seen("closed", variable.get())

    async def handle(_: Request) -> Response:
        return StreamingResponse(pieces())

    for spec in ("2.3", "2.4"):
        await Client(seen, spec).ask(wrapped(seen, handle), "/")


@case()
async def middleware_around_a_handler_that_fails(seen: Seen) -> None:
    async def handle(_: Request) -> Response:
        await asyncio.sleep(0)
        raise ValueError("handler")

    try:
        await Client(seen).ask(wrapped(seen, handle), "/")
    except ValueError as error:
        seen(error)


@case()
async def middleware_around_a_handler_whose_client_leaves(seen: Seen) -> None:
    client = Client(seen)

    async def handle(request: Request) -> Response:
        seen(await request.body())
        soon(client.leaves.set)
        seen(await request.receive())
        return PlainTextResponse("late")

    await client.ask(wrapped(seen, handle), "/")


@case()
async def middleware_around_a_stream_whose_client_leaves(seen: Seen) -> None:
    client = Client(seen, "2.3")

    async def pieces() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            client.leaves.set()
            await asyncio.get_running_loop().create_future()
        except BaseException as error:
            seen("piece", type(error))
            raise

    async def handle(_: Request) -> Response:
        return StreamingResponse(pieces())

    try:
        await client.ask(wrapped(seen, handle), "/")
    except ClientDisconnect as error:
        seen(error)


@case()
async def middleware_is_cancelled(seen: Seen) -> None:
    task: Any = asyncio.current_task()

    async def handle(_: Request) -> Response:
        soon(task.cancel, "stop")
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen("handler", "cancelled", task.cancelling())
            raise
        return Response()

    try:
        await Client(seen).ask(wrapped(seen, handle), "/")
    except asyncio.CancelledError as error:
        seen(error.args, task.cancelling(), task.uncancel())
    await asyncio.sleep(0)
    seen("goes on")


def service(seen: Seen) -> FastAPI:
    """Dependencies of both kinds, each telling where it runs."""
    app, here = FastAPI(openapi_url=None), threading.get_ident()

    def where() -> str:
        return "here" if threading.get_ident() == here else "in a thread"

    def plain() -> str:
        seen("plain", where(), variable.get())
        return "plain"

    def opened(plain: Annotated[str, Depends(plain)]) -> Iterator[str]:
        seen("opened", where(), variable.get())
        try:
            yield f"{plain} opened"
        except Exception as error:
            seen("opened", "sees", type(error), error.args)
            raise
        finally:
            seen("opened", "closed", where(), variable.get())

    async def entered(opened: Annotated[str, Depends(opened)]) -> AsyncIterator[str]:
        variable.set("entered")
        seen("entered", where())
        try:
            yield f"{opened} entered"
        finally:
            await asyncio.sleep(0)
            seen("entered", "left", where(), variable.get())

    @app.post("/there")
    def there(given: Annotated[str, Depends(entered)], background: BackgroundTasks) -> str:
        background.add_task(lambda: seen("background", where(), variable.get()))
        seen("handler", where(), variable.get())
        return given

    @app.post("/here")
    async def here_too(given: Annotated[str, Depends(entered)], background: BackgroundTasks) -> str:
        background.add_task(asyncio.sleep, 0)
        seen("handler", where(), variable.get())
        return given

    @app.post("/fails")
    def fails(given: Annotated[str, Depends(entered)]) -> str:
        raise ValueError(given)

    @app.post("/refuses")
    async def refuses(given: Annotated[str, Depends(entered)]) -> str:
        raise HTTPException(418, given)

    @app.post("/streams")
    def streams(given: Annotated[str, Depends(entered)]) -> StreamingResponse:
        return StreamingResponse(f"{given} {number} {where()}" for number in range(3))

    @app.post("/waits")
    async def waits(given: Annotated[str, Depends(entered)]) -> str:
        task: Any = asyncio.current_task()
        soon(task.cancel, "stop")
        await asyncio.get_running_loop().create_future()
        return given

    return app


@case()
async def dependencies_of_a_handler_in_a_thread(seen: Seen) -> None:
    await Client(seen).ask(service(seen), "/there")
    seen(variable.get())


@case()
async def dependencies_of_a_handler_on_the_loop(seen: Seen) -> None:
    await Client(seen).ask(service(seen), "/here")
    seen(variable.get())


@case()
async def dependencies_of_a_handler_that_fails(seen: Seen) -> None:
    try:
        await Client(seen).ask(service(seen), "/fails")
    except ValueError as error:
        seen(error)


@case()
async def dependencies_of_a_handler_that_refuses(seen: Seen) -> None:
    await Client(seen).ask(service(seen), "/refuses")


@case()
async def dependencies_of_a_stream_from_a_thread(seen: Seen) -> None:
    for spec in ("2.3", "2.4"):
        await Client(seen, spec).ask(service(seen), "/streams")


@case()
async def dependencies_of_a_handler_that_is_cancelled(seen: Seen) -> None:
    task: Any = asyncio.current_task()
    try:
        await Client(seen).ask(service(seen), "/waits")
    except asyncio.CancelledError as error:
        seen(error.args, task.cancelling(), task.uncancel())
