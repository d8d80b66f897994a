"""Starlette's test client, with a server between it and the application: a plugin for pytest.

Loaded (`-p live_client`) into a run of Starlette's own tests. Where a test makes a `TestClient` and asks
something of it, a Bridgehead serves the application on a thread and a real connection carries the question,
or the WebSocket (`live_websocket.py`). What a socket on this machine cannot have (another peer's address,
`https`) is written into the scope, as the test client does it.

What is not run, and why, is in `NOT_RUN`.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

import httpx2 as httpx
import pytest
import starlette.testclient
from live_websocket import Wire

import bridgehead

Scope = dict[str, Any]
PLAIN = starlette.testclient.TestClient
# A run of the tests without us, to compare with.
IS_PLAIN = os.environ.get("LIVE_CLIENT") == "plain"
LOOP, RUNTIME = os.environ.get("LIVE_LOOP", "asyncio"), os.environ.get("LIVE_RUNTIME", "auto")
SECONDS = 20.0
# Marks a request, so that the exception of its application finds the test. The application does not see it.
MARK = b"x-live-number"

HOST = "the server refuses the malformed Host by itself, with another text or status"
UNSENT = "no HTTP client sends that"
UNSEEN = "the test client shows what no HTTP client shows"
# By the beginning of a test's name, or the name of its file.
NOT_RUN = {
    "test_testclient.py": "the test client is what is tested",
    "test_received_bytes_are_counted_with_unreliable_content_length": UNSENT,
    "test_gzip_trailers": UNSEEN,
    "test_gzip_excluded_content_type_trailers": UNSEEN,
    "test_https_redirect_middleware[": "one of its hosts has a port above 65535, which the server refuses",
    "test_https_redirect_middleware_without_server": HOST,
    "test_trusted_host_middleware_ipv6[asyncio-api_service:": HOST,
    "test_trusted_host_middleware_ipv6[asyncio-[v1.foo]": HOST,
    "test_host_routing_ip_literals": HOST,
    "test_host_routing_rejects_invalid_hosts": HOST,
    "test_host_routing_ignores_port[asyncio-api.example.org:": HOST,
    "test_accessing_context_from_threaded_sync_endpoint": "the test's context is that of another thread",
    "test_force_500_response": "the server's 500 has a text, the test client's has none",
    "test_request_headers": "the order of the test client's own headers",
    "test_websocket_headers[": "the test client's own headers, and a key that no handshake may have",
    "test_websocket_route_middleware": "names of headers are in lower case on the wire",
    "test_receive_wrong_message_type": UNSENT,
    "test_cookies_invalid[asyncio-  =": UNSENT,
    "test_staticfiles_304_with_if_none_match_wildcard[asyncio- ": UNSENT,
    "test_request_send_push_promise": "the server offers no push; browsers have given it up",
    "test_response_phrase": "one of its statuses is 123, which ends no answer",
    "test_staticfiles_with_invalid_dir_permissions_returns_401": "root may read everything",
    "test_staticfiles_with_file_permission": "root may read everything",
}

open_clients: list[LiveClient] = []


class Run:
    """One request in the application."""

    def __init__(self) -> None:
        self.begun = False
        self.over = threading.Event()
        self.error: BaseException | None = None
        self.debug: dict[str, Any] = {}
        # What the test client tells of the request that a socket here cannot.
        self.scope: Scope = {}
        # What the application said of a WebSocket, be it accepted or not.
        self.said: list[dict[str, Any]] = []


class Live:
    """The application as the server sees it: remembers how each request ended."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.runs: dict[bytes, Run] = {}
        self.lifespan_error: BaseException | None = None

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            try:
                await self.app(scope, receive, send)
            except BaseException as error:
                self.lifespan_error = error
                raise
            return
        number = dict(scope["headers"])[MARK]
        scope["headers"] = [(name, value) for name, value in scope["headers"] if name != MARK]
        run = self.runs[number]
        run.begun = True
        scope |= run.scope
        scope.setdefault("extensions", {})["http.response.debug"] = {}

        async def sending(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.debug":
                run.debug = message["info"]
            else:
                await send(message)
                if scope["type"] == "websocket":
                    run.said.append(message)

        try:
            await self.app(scope, receive, sending)
        except BaseException as error:
            run.error = error
            raise
        finally:
            run.over.set()


class LiveTransport(httpx.BaseTransport):
    """Carries requests over a socket."""

    numbers = itertools.count()

    def __init__(self, plain: Any, client: LiveClient) -> None:
        self.plain, self.client = plain, client
        self.connections = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        live, port = self.client.serving()
        number = str(next(self.numbers)).encode()
        run = live.runs[number] = Run()
        url = request.url
        usual = {"http": 80, "https": 443, "ws": 80, "wss": 443}
        run.scope = {
            "scheme": url.scheme,
            "client": self.plain.client,
            "server": [url.raw_host.decode(), url.port or usual[url.scheme]],
            "root_path": self.plain.root_path,
        }
        if url.scheme in {"ws", "wss"}:
            self.upgrade(request, Wire(port, run, (MARK, number)))
        carried = httpx.Request(
            request.method,
            httpx.URL(scheme="http", host="127.0.0.1", port=port, raw_path=url.raw_path),
            headers=[*request.headers.raw, (MARK, number)],
            content=request.read(),
        )
        # As they were: the body's length is known by now, which a generator's was not.
        if "content-length" in request.headers:
            carried.headers.pop("transfer-encoding", None)
        response = self.connections.handle_request(carried)
        stream = LiveStream(response, run, self.plain.raise_server_exceptions)
        if response.status_code == 500:
            # An exception before the start of an answer is the test's at once.
            stream.settle(only_if_over=True)
        answer = httpx.Response(
            response.status_code, headers=response.headers.raw, stream=stream, request=request
        )
        stream.add_debug_to(answer)
        return answer

    def upgrade(self, request: httpx.Request, wire: Wire) -> None:
        """Raises what the test client raises for a WebSocket, which will be a real one."""
        try:
            self.plain.handle_request(request)
        except starlette.testclient._Upgrade as upgrade:
            upgrade.session.app = wire
            raise

    def close(self) -> None:
        self.connections.close()
        self.plain.close()


class LiveStream(httpx.SyncByteStream):
    """An answer's body; once it is read, the application's exception is the test's."""

    def __init__(self, response: httpx.Response, run: Run, raises: bool) -> None:
        self.response, self.run, self.raises = response, run, raises

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self.response.stream, httpx.SyncByteStream)
        try:
            yield from self.response.stream
        except httpx.RemoteProtocolError:
            # Broken off by an exception, which is raised instead where the test wants it.
            self.run.over.wait(SECONDS)
            if self.run.error is None:
                raise

    def close(self) -> None:
        self.response.close()
        self.settle()

    def settle(self, only_if_over: bool = False) -> None:
        if not self.run.begun:
            # The server has refused the request by itself.
            return
        over = self.run.over.wait(0.2 if only_if_over else SECONDS)
        assert over or only_if_over, "the application did not return"
        if self.raises and self.run.error is not None and not is_disconnect(self.run.error):
            raise self.run.error

    def add_debug_to(self, answer: Any) -> None:
        if debug := self.run.debug:
            answer.extensions["http.response.debug"] = debug
            for name in debug.keys() & {"template", "context"}:
                setattr(answer, name, debug[name])


def is_disconnect(error: BaseException) -> bool:
    """A client that leaves early is nothing that the test client knows."""
    return isinstance(error, bridgehead.ClientDisconnected)


class LiveClient(PLAIN):
    """`TestClient`, live. The server comes with the first question, and its lifespan with `with`."""

    __test__ = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._transport = LiveTransport(self._transport, self)
        self.running: tuple[bridgehead.Server, threading.Thread, Live] | None = None
        self.failed: BaseException | None = None
        open_clients.append(self)

    def serving(self, lifespan: str = "off") -> tuple[Live, int]:
        if self.running is None:
            live = Live(self.app)
            config = bridgehead.Config(
                live, port=0, lifespan=lifespan, log_level="critical", access_log=False, loop=LOOP,
                runtime=RUNTIME, server_header=False, date_header=False, timeout_graceful_shutdown=2,
            )  # fmt: skip
            server = bridgehead.Server(config)
            thread = threading.Thread(target=self.run, args=(server,), daemon=True)
            thread.start()
            deadline = time.monotonic() + SECONDS
            while not server.started and thread.is_alive():
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.001)
            self.running = server, thread, live
            if live.lifespan_error is not None:
                raise live.lifespan_error
            if self.failed is not None:
                raise self.failed
        server, _, live = self.running
        sockets: list[socket.socket] = server.servers[0].sockets
        return live, sockets[0].getsockname()[1]

    def run(self, server: bridgehead.Server) -> None:
        try:
            server.run()
        except BaseException as error:
            self.failed = error

    def __enter__(self) -> Self:
        self.serving("on")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.running is None:
            return
        (server, thread, live), self.running = self.running, None
        self._transport.connections.close()
        server.should_exit = True
        thread.join(SECONDS)
        assert not thread.is_alive(), "the server does not end"
        if live.lifespan_error is not None:
            raise live.lifespan_error


@pytest.fixture(autouse=True)
def stop_servers() -> Iterator[None]:
    yield
    while open_clients:
        client = open_clients.pop()
        if client.running is not None:
            client.running[2].lifespan_error = None
        client.stop()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """What asks over HTTP, on asyncio: all else would be the same with and without us."""
    chosen = [item for item in items if goes_over_http(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def goes_over_http(item: Any) -> bool:
    if "trio" in item.name or "test_client_factory" not in item.fixturenames:
        return False
    return not any(item.name.startswith(name) or item.path.name == name for name in NOT_RUN)


if not IS_PLAIN:
    starlette.testclient.TestClient = LiveClient  # type: ignore[misc]
