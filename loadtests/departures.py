"""Clients that break off what they began by HTTP/2 and by WebSocket: a stream, a connection, half a message.

Not those of HTTP/1, which `bridgehead.testing` has. Bytes by hand: a library would end in order.

Invariant: whoever is called here has left, by a reset, when the call returns.
"""

from urllib.parse import urlsplit

from bridgehead.testing import ServerProcess
from bridgehead.testing.clients import connected, resets

# What a connection of HTTP/2 begins with, and settings without a word.
BEGINNING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
HEADERS, RST_STREAM = 1, 3
# The head and the request end with the frame.
WHOLE = 0x5
CANCEL = (8).to_bytes(4, "big")
HANDSHAKE = (
    b"GET %s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
# A message of five bytes, its mask, and two of them.
HALF_A_MESSAGE = b"\x81\x85\x01\x02\x03\x04ab"


def leave_a_stream(server: ServerProcess, path: str) -> None:
    """Ask twice on one connection, break off the one, and then the connection."""
    asked = frame(HEADERS, WHOLE, 1, head(path)) + frame(HEADERS, WHOLE, 3, head(path))
    with connected(address(server)) as connection:
        connection.sendall(BEGINNING + asked + frame(RST_STREAM, 0, 1, CANCEL))
        # The server's settings: it has begun.
        connection.recv(65536)
        resets(connection)


def drop_a_websocket(server: ServerProcess, path: str) -> None:
    """Open it, and leave in the middle of a message."""
    with connected(address(server)) as connection:
        connection.sendall(HANDSHAKE % path.encode())
        came = b""
        while b"\r\n\r\n" not in came:
            came += connection.recv(65536) or b"\r\n\r\n"
        connection.sendall(HALF_A_MESSAGE)
        resets(connection)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def head(path: str) -> bytes:
    """A GET's, packed: two of the static table, then a path and a host as they are."""
    named = path.encode()
    return b"\x82\x86\x04" + bytes([len(named)]) + named + b"\x01\x01a"


def address(server: ServerProcess) -> tuple[str, int]:
    """Where it listens."""
    parts = urlsplit(server.url)
    return parts.hostname or "127.0.0.1", parts.port or 80
