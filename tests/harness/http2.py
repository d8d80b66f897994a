"""A client of HTTP/2, which waits for one thing at a time.

Not lenient: a stream that is reset, or a connection that ends, fails the test unless that is waited for.
Invariant: what comes while something else is waited for is kept.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from harness.websocket import WebSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

Headers = list[tuple[str, str]]


@dataclass(kw_only=True)
class Stream:
    """What has come of one answer."""

    interim: list[Headers] = field(default_factory=list)
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    trailers: Headers = field(default_factory=list)
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(dict(self.headers)[":status"])

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


class Http2Client:
    """One connection. Every wait ends after `timeout` seconds with an error."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None, *, timeout: float = 15.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._scheme = "http"
        if context is not None:
            context.set_alpn_protocols(["h2", "http/1.1"])
            secured = context.wrap_socket(self.socket, server_hostname="localhost")
            assert secured.selected_alpn_protocol() == "h2"
            self.socket, self._scheme = secured, "https"
        self.streams: dict[int, Stream] = {}
        self.goodbyes: list[int] = []
        self.closed = False
        self._has_settings = False
        self._unread = b""
        # Whether what comes makes room for more.
        self.makes_room = True
        self._protocol = H2Connection(H2Configuration(header_encoding="latin-1"))
        self._protocol.initiate_connection()
        self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    # --- writing

    def begin(
        self,
        path: str,
        *,
        method: str = "GET",
        protocol: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
        ends: bool = True,
    ) -> int:
        """Sends a request's head; gives its stream."""
        number = self._protocol.get_next_available_stream_id()
        pseudo = [(":method", method), (":scheme", self._scheme), (":authority", "test"), (":path", path)]
        if protocol is not None:
            pseudo.append((":protocol", protocol))
        self._protocol.send_headers(number, [*pseudo, *headers], end_stream=ends)
        self.streams[number] = Stream()
        self._flush()
        return number

    def send(self, number: int, body: bytes, *, ends: bool = True) -> None:
        """Sends a piece of a body, as there is room for it."""
        while body:
            room = self._protocol.local_flow_control_window(number)
            size = min(room, self._protocol.max_outbound_frame_size, len(body))
            if size == 0:
                self._read()
                continue
            piece, body = body[:size], body[size:]
            self._protocol.send_data(number, piece, end_stream=ends and not body)
            self._flush()

    def reset(self, number: int) -> None:
        self._protocol.reset_stream(number, 8)
        self._flush()

    # --- reading

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Stream:
        """One request, and the whole of its answer."""
        number = self.begin(path, method=method, headers=headers, ends=not body)
        self.send(number, body)
        return self.answer(number)

    def answer(self, number: int) -> Stream:
        self.wait(number, lambda stream: stream.ended)
        return self.streams[number]

    def wait(self, number: int, is_there: Callable[[Stream], object]) -> Stream:
        """Until something of an answer is there."""
        stream = self.streams[number]
        while not is_there(stream):
            assert stream.reset is None, f"stream {number} was reset with {stream.reset}"
            assert not self.closed, f"the connection ended before stream {number}: {self.goodbyes}"
            self._read()
        return stream

    def takes_connects(self) -> bool:
        """Whether the server has said that it takes extended ones (RFC 8441)."""
        while not self._has_settings:
            self._read()
        return bool(self._protocol.remote_settings.enable_connect_protocol)

    def _flush(self) -> None:
        self.socket.sendall(self._protocol.data_to_send())

    def _read(self) -> None:
        data = self.socket.recv(65_536)
        self.closed = not data
        self._unread += data
        while len(self._unread) >= (size := 9 + int.from_bytes(self._unread[:3])):
            piece, self._unread = self._unread[:size], self._unread[size:]
            for event in self._protocol.receive_data(piece):
                self._take(event)
        if not self.closed and (answer := self._protocol.data_to_send()):
            self.socket.sendall(answer)

    def _take(self, event: Event) -> None:
        match event:
            case InformationalResponseReceived(stream_id=int(number), headers=headers):
                self.streams[number].interim.append(_text(headers))
            case ResponseReceived(stream_id=int(number), headers=headers):
                self.streams[number].headers = _text(headers)
            case DataReceived(stream_id=int(number), data=bytes(data), flow_controlled_length=int(length)):
                self.streams[number].body += data
                if self.makes_room:
                    self._protocol.acknowledge_received_data(length, number)
            case TrailersReceived(stream_id=int(number), headers=headers):
                self.streams[number].trailers = _text(headers)
            case StreamEnded(stream_id=int(number)):
                self.streams[number].ended = True
            case StreamReset(stream_id=int(number), error_code=code):
                self.streams[number].reset = int(code or 0)
            case RemoteSettingsChanged():
                self._has_settings = True
            case ConnectionTerminated(error_code=code):
                self.goodbyes.append(int(code or 0))
                if not code:
                    # Streams that are open go on, which the library does not know.
                    self._protocol.state_machine.state = ConnectionState.CLIENT_OPEN


class StreamWebSocket(WebSocket):
    """A WebSocket over one stream of a connection; it is open once this exists."""

    def __init__(
        self, connection: Http2Client, target: str, *, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.stream = begin_websocket(connection, target, headers=headers)
        self.answer = connection.wait(self.stream, lambda stream: stream.headers)
        assert self.answer.status == 200, self.answer
        self.client: Any = _StreamBytes(connection, self.stream)


def begin_websocket(
    connection: Http2Client,
    target: str,
    *,
    version: str = "13",
    protocol: str = "websocket",
    headers: Iterable[tuple[str, str]] = (),
) -> int:
    """Sends a handshake; gives its stream."""
    headers = [("sec-websocket-version", version), *headers]
    return connection.begin(target, method="CONNECT", protocol=protocol, headers=headers, ends=False)


class _StreamBytes:
    """What a WebSocket needs of a client."""

    def __init__(self, connection: Http2Client, number: int) -> None:
        self._connection = connection
        self._number = number

    def send(self, data: bytes) -> None:
        self._connection.send(self._number, data, ends=False)

    try_send = send

    def read_exactly(self, size: int) -> bytes:
        stream = self._connection.wait(self._number, lambda stream: len(stream.body) >= size)
        data, stream.body = stream.body[:size], stream.body[size:]
        return data

    def read_to_any_end(self) -> bytes:
        return self._connection.answer(self._number).body


def _text(headers: object) -> Headers:
    assert isinstance(headers, list)
    return [(str(name), str(value)) for name, value in headers]
