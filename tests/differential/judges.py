"""What others make of a stream of bytes: h11, and llhttp as httptools has it, both as strict as they come.

Not a judgement: `test_differential.py` compares.
Invariant: a reading has the requests that were read to their end, in order, and how the reading ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import h11
import httptools

Headers = list[tuple[bytes, bytes]]


class End(Enum):
    """How a reading ended, behind the last whole request."""

    REFUSED = "refused"  # not in order
    WAITING = "waiting"  # a request has not ended, or none has begun
    CLOSED = "closed"  # nothing is read behind a request that ends its connection


@dataclass
class Read:
    """One whole request."""

    method: bytes
    target: bytes
    headers: Headers
    body: bytes

    @property
    def framing(self) -> tuple[bytes, bytes, bytes]:
        """What all who read it have to agree on."""
        return self.method, path_of(self.target), self.body

    @property
    def meaning(self) -> Headers:
        """Its header lines, as all have to understand them. An absolute target outranks the host."""
        headers = [(name.lower(), value.strip(b" \t")) for name, value in self.headers]
        return sorted(
            # h11 writes a coding in lower case, as it may.
            (name, value.lower() if name == b"transfer-encoding" else value)
            for name, value in headers
            if name != b"host"
        )


@dataclass
class Reading:
    requests: list[Read] = field(default_factory=list)
    end: End = End.WAITING
    why: str = ""


def path_of(target: bytes) -> bytes:
    """A target as ASGI has it: without scheme and host, and without the question mark of an empty query."""
    scheme, separator, rest = target.partition(b"://")
    if separator and scheme.isalpha():
        host = rest.partition(b"/")[0].partition(b"?")[0]
        target = rest.removeprefix(host)
        if not target.startswith(b"/"):
            target = b"/" + target
    return target.removesuffix(b"?") if target.count(b"?") == 1 else target


def read_by_h11(data: bytes) -> Reading:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1024)
    connection.receive_data(data)
    reading = Reading()
    request: Read | None = None
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError as problem:
            reading.end, reading.why = End.REFUSED, str(problem)
            return reading
        match event:
            case h11.Request():
                request = Read(event.method, event.target, list(event.headers.raw_items()), b"")
            case h11.Data() if request is not None:
                request.body += event.data
            case h11.EndOfMessage() if request is not None:
                reading.requests.append(request)
                if not _answered(connection):
                    reading.end = End.CLOSED
                    return reading
            case _:
                return reading


def _answered(connection: h11.Connection) -> bool:
    """Whether there may be another request once this one is answered."""
    connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
    if connection.our_state is h11.SWITCHED_PROTOCOL:  # as CONNECT is answered
        return False
    connection.send(h11.EndOfMessage())
    if connection.our_state is not h11.DONE:
        return False
    connection.start_next_cycle()
    return True


class _Listener:
    """What httptools calls."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.parser: Any = httptools.HttpRequestParser(self)
        self._begin()

    def _begin(self) -> None:
        self._target = b""
        self._headers: Headers = []
        self._body = b""

    def on_message_begin(self) -> None:
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        # Trailers come as headers too.
        self._head = list(self._headers)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        read = Read(self.parser.get_method(), self._target, self._head, self._body)
        self.reading.requests.append(read)
        if not self.parser.should_keep_alive():
            self.reading.end = End.CLOSED


def read_by_llhttp(data: bytes) -> Reading:
    listener = _Listener()
    try:
        listener.parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        listener.reading.end = End.CLOSED
    except httptools.HttpParserError as problem:
        # llhttp calls it an error when something follows a request that ends its connection.
        if listener.reading.end is not End.CLOSED:
            listener.reading.end, listener.reading.why = End.REFUSED, str(problem)
    return listener.reading


JUDGES = {"h11": read_by_h11, "llhttp": read_by_llhttp}
