"""Clients as they should not be: slow, resetting, half-closing, never reading.

Not a client library: one connection and one request each, HTTP/1.1 by hand.

Invariant: every wait has a deadline, and a client that is closed leaves no thread and no socket.
"""

import contextlib
import http.client
import socket
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, TypedDict
from urllib.parse import urlsplit

TIMEOUT = 15.0


class HasUrl(Protocol):
    """A server of `serve_app`, or an upstream."""

    @property
    def url(self) -> str: ...  # noqa: D102 (an address)


Target = str | HasUrl


class ClientKeywords(TypedDict, total=False):
    """What the clients take, for type checkers; those below the line are one client's each."""

    method: str
    headers: Iterable[tuple[str, str]]
    body: bytes
    # ----
    piece: int
    pause: float
    after: int | None
    buffer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, as bytes."""

    method: str = "GET"
    path: str = "/"
    headers: Iterable[tuple[str, str]] = ()
    body: bytes = b""

    def __bytes__(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: localhost", "Connection: close"]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(self.body)}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


@dataclass
class FaultyClient:
    """One connection. As a context manager it is closed when it is left."""

    socket: socket.socket
    method: str = "GET"
    _thread: threading.Thread | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)

    def answer(self) -> Answer:
        """The answer, once it is whole; `ConnectionError` when the server closes before."""
        if self._thread is not None:
            self._thread.join(TIMEOUT)
            if self._thread.is_alive():
                raise TimeoutError(f"the request was not sent within {TIMEOUT:g} s; send it faster")
        response = http.client.HTTPResponse(self.socket, method=self.method)
        try:
            response.begin()
            body = response.read()
        except http.client.IncompleteRead as early:
            raise ConnectionError(f"the server closed after {len(early.partial)} bytes of the body") from None
        except http.client.HTTPException as problem:
            raise ConnectionError(f"no answer: {problem!r}") from None
        finally:
            response.close()
        return Answer(
            status=response.status,
            headers={name.lower(): value for name, value in response.getheaders()},
            body=body,
        )

    def wait_for_bytes(self) -> bytes:
        """The first that come of the answer; nothing when the server has closed."""
        return self.socket.recv(65536)

    def wait_for_end(self) -> bytes:
        """All that comes until the server closes, be it by a reset."""
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := self.socket.recv(65536):
                parts.append(part)
        return b"".join(parts)

    def reset(self) -> None:
        """Leave with an RST."""
        resets(self.socket)
        self.close()

    def close(self) -> None:
        """Leave."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(TIMEOUT)
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def slow_client(
    target: Target,
    path: str = "/",
    *,
    method: str = "GET",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    piece: int = 1,
    pause: float = 0.01,
) -> FaultyClient:
    """Send a request on a thread, `piece` bytes at a time with pauses between them; `answer()` waits."""
    client = FaultyClient(_connect(target), method)
    data = bytes(Request(method=method, path=path, headers=headers, body=body))
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]

    def trickle() -> None:
        # A server that has closed has its reasons; the answer tells.
        with contextlib.suppress(OSError):
            for each in pieces:
                if client._stopped.wait(pause):
                    return
                client.socket.sendall(each)

    client._thread = threading.Thread(target=trickle, name="slow-client", daemon=True)
    client._thread.start()
    return client


def resetting_client(
    target: Target,
    path: str = "/",
    *,
    method: str = "GET",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    after: int | None = None,
) -> FaultyClient:
    """Send a request, or its first `after` bytes; whenever this client leaves, it does so with a reset."""
    data = bytes(Request(method=method, path=path, headers=headers, body=body))
    client = _Resetting(_connect(target), method)
    client.socket.sendall(data if after is None else data[:after])
    return client


class _Resetting(FaultyClient):
    def close(self) -> None:
        if self.socket.fileno() >= 0:
            resets(self.socket)
        super().close()


def half_closing_client(
    target: Target,
    path: str = "/",
    *,
    method: str = "GET",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
) -> FaultyClient:
    """Send a request, and say that nothing more will come; the answer is still read."""
    client = FaultyClient(_connect(target), method)
    client.socket.sendall(bytes(Request(method=method, path=path, headers=headers, body=body)))
    client.socket.shutdown(socket.SHUT_WR)
    return client


def never_reading_client(
    target: Target,
    path: str = "/",
    *,
    method: str = "GET",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    buffer: int = 4096,
) -> FaultyClient:
    """Send a request, and read nothing of the answer: the kernel keeps about `buffer` bytes of it."""
    client = FaultyClient(_connect(target, receive_buffer=buffer), method)
    client.socket.sendall(bytes(Request(method=method, path=path, headers=headers, body=body)))
    return client


def in_the_clear(url: str) -> None:
    """Whether it can be asked byte by byte."""
    if url.startswith("https:"):
        raise ValueError(f"{url} is asked by TLS, and this client sends bytes of its own in the clear")


def _connect(target: Target, *, receive_buffer: int | None = None) -> socket.socket:
    url = target if isinstance(target, str) else target.url
    in_the_clear(url)
    path = url.removeprefix("unix:") if url.startswith("unix:") else None
    parts = urlsplit(url)
    address = (parts.hostname or "127.0.0.1", parts.port or 80)
    return connected(path or address, receive_buffer=receive_buffer)


def resets(connection: socket.socket) -> None:
    """Its close is an RST from now on."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def connected(
    address: tuple[str, int] | str, *, timeout: float = TIMEOUT, receive_buffer: int | None = None
) -> socket.socket:
    """A connection to a host's port or to a Unix socket, of which each wait has a deadline."""
    if isinstance(address, str):
        family = socket.AF_UNIX
    else:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        if receive_buffer is not None:
            # Before connect: the window scale is settled there.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection
