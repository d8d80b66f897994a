"""What `instructions.py` counts: each case once, and how it is asked.

Not how it is counted. The clients here are as small as can be, since nothing of theirs is counted.

Invariant: each answer is compared with what is due, and the same bytes are sent every time.
"""

import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

ROUNDS = 600
PATIENCE = (
    300  # seconds for an answer: below callgrind, on a busy machine, a server takes two minutes to start
)
TLS = "--ssl-self-signed"
HTTP, H2, WS = "HTTP/1.1", "HTTP/2", "WebSocket"
ANSWERS = re.compile(rb"HTTP/1\.1 200 OK\r\n(?:[^\r\n]+\r\n)+\r\n")
# HTTP/2: a frame's kinds and flags, and what begins a connection (RFC 9113, sections 3.4 and 6).
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY = 0, 1, 3, 4, 7
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
# GET, http, /, and three headers by their places in HPACK's table, not to be remembered (RFC 7541).
_HEAD = b"\x82\x86\x84\x01\x09127.0.0.1\x0f\x2b\x0cinstructions\x0f\x04\x03*/*"
_STATUS_200 = 0x88


@dataclass(frozen=True, slots=True)
class Case:
    """One row: what is asked, on how many connections at once."""

    name: str
    app: str = "apps:hello"
    path: str = "/"
    speaks: str = HTTP
    headers: bytes = b""  # more of them, by HTTP/1.1
    body: bytes = b""
    due: bytes = b"hello"
    connections: int = 1
    chunked: bool = False
    options: tuple[str, ...] = ()
    rounds: int = ROUNDS

    @property
    def is_secure(self) -> bool:
        """Whether it is asked by TLS."""
        return TLS in self.options


def _echo(size: str, length: int, **more: int) -> Case:
    """A body that comes back."""
    return Case(f"POST echo {size}", app="apps:echo", body=b"x" * length, due=b"x" * length, **more)


CASES = (
    Case("hello"),
    Case("hello, 16 at once", connections=16, rounds=60),
    Case("hello, uvloop", options=("--loop=uvloop",)),
    Case("hello, TLS", options=(TLS,)),
    Case("hello, HTTP/2", speaks=H2),
    Case("WebSocket echo 64 B", app="apps:messages", speaks=WS, body=b"x" * 64, due=b"x" * 64),
    Case(
        "Starlette JSON",
        app="frameworks:json_app",
        path="/json",
        due=b'{"message":"hello","path":"/json"}',
        rounds=300,
    ),
    _echo("1 KB", 1024),
    _echo("64 KB", 65_536, rounds=200),
    Case("GET 1 MB", app="apps:body_1m", due=b"x" * 1_048_576, rounds=300),
    Case("stream of 100 × 1 KB", app="apps:streams", due=b"x" * 102_400, chunked=True, rounds=60),
    Case("ten sleep(0), uvloop", app="apps:yields", options=("--loop=uvloop",)),
)


class Caller:
    """A client by HTTP/1.1."""

    def __init__(self, client: socket.socket, case: Case) -> None:
        self._client = client
        self._case = case
        head = b"Host: 127.0.0.1\r\nUser-Agent: instructions\r\nAccept: */*\r\n" + case.headers
        if case.body:
            head = b"POST %s HTTP/1.1\r\n%sContent-Length: %d\r\n" % (
                case.path.encode(),
                head,
                len(case.body),
            )
        else:
            head = b"GET %s HTTP/1.1\r\n%s" % (case.path.encode(), head)
        self._request = b"%s\r\n%s" % (head, case.body)

    def send(self) -> None:
        """Ask, and do not wait."""
        self._client.sendall(self._request)

    def check(self) -> None:
        """Read the answer, which has to be the one that is due."""
        case = self._case
        last = b"\r\n0\r\n\r\n" if case.chunked else case.due
        answer = bytearray()
        while not answer.endswith(last):
            answer += self._piece()
        found = ANSWERS.match(answer)
        assert found is not None, answer[:200]
        body = bytes(answer[found.end() :])
        assert (dechunked(body) if case.chunked else body) == case.due

    def _piece(self) -> bytes:
        piece = self._client.recv(262_144)
        assert piece, f"{self._case.name}: the connection was closed"
        return piece


class MessageCaller(Caller):
    """A client that has a WebSocket, and sends one text after the other."""

    def __init__(self, client: socket.socket, case: Case) -> None:
        super().__init__(client, case)
        client.sendall(
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self._piece()
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        mask, size = b"mask", len(case.body)
        assert size < 126, "of a longer one the length is written otherwise"
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(case.body))
        self._request = b"%b%b%b" % (bytes([0x81, 0x80 | size]), mask, masked)
        self._due = bytes([0x81, len(case.due)]) + case.due

    def check(self) -> None:
        """The message comes back, in one frame."""
        answer = b""
        while len(answer) < len(self._due):
            answer += self._piece()
        assert answer == self._due, answer[:200]


class StreamCaller(Caller):
    """A client by HTTP/2, which has one stream after the other."""

    def __init__(self, client: socket.socket, case: Case) -> None:
        super().__init__(client, case)
        self._stream = -1
        self._came = b""
        client.sendall(_PREFACE + frame(_SETTINGS, 0, 0, b""))

    def send(self) -> None:
        """A head that ends its stream."""
        self._stream += 2
        self._client.sendall(frame(_HEADERS, _END_STREAM | _END_HEADERS, self._stream, _HEAD))

    def check(self) -> None:
        """Read frames until the stream ends."""
        body, flags, stream = b"", 0, 0
        while not (stream == self._stream and flags & _END_STREAM):
            kind, flags, stream, content = self._frame()
            assert kind not in (_RST_STREAM, _GOAWAY), (kind, content)
            if kind == _SETTINGS and not flags & _ACK:
                self._client.sendall(frame(_SETTINGS, _ACK, 0, b""))
            elif kind == _HEADERS:
                assert content[0] == _STATUS_200, content
            elif kind == _DATA:
                body += content
        assert body == self._case.due, body[:200]

    def _frame(self) -> tuple[int, int, int, bytes]:
        while len(self._came) < 9 or len(self._came) < 9 + int.from_bytes(self._came[:3]):
            self._came += self._piece()
        size = 9 + int.from_bytes(self._came[:3])
        one, self._came = self._came[:size], self._came[size:]
        return one[3], one[4], int.from_bytes(one[5:9]), one[9:]


def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    """One of HTTP/2."""
    return len(content).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + content


@contextmanager
def connected(port: int, case: Case) -> Iterator[Caller]:
    """A client, who trusts whatever certificate it is shown."""
    callers = {HTTP: Caller, WS: MessageCaller, H2: StreamCaller}
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain:
        if not case.is_secure:
            yield callers[case.speaks](plain, case)
            return
        anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        with anybody.wrap_socket(plain) as client:
            yield callers[case.speaks](client, case)


def ask(callers: list[Caller]) -> None:
    """One request by each, all sent before the first answer is read."""
    for caller in callers:
        caller.send()
    for caller in callers:
        caller.check()


def dechunked(body: bytes) -> bytes:
    """What the chunks hold."""
    parts = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        parts.append(rest[: int(size, 16)])
        body = rest[int(size, 16) + 2 :]
    return b"".join(parts)
