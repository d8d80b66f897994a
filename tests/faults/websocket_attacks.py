"""Clients of WebSockets that mean harm: as `attacks`, in frames that are compressed.

Not a judge of costs (`run.py` is), nor of what is malformed (`make autobahn`): all that is sent is allowed.
Invariant: every wait has a deadline, and what is waited for is what the server does.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable

from attacks import PATIENCE, Spent, many, say
from harness import Server
from harness.websocket import TEXT, WebSocket, close_frame, frame, handshake

# The bit of a message that is compressed (RFC 7692, section 6).
COMPRESSED = 4
# The largest message that is taken, by default.
LARGEST = 16 * 1024 * 1024 - 1
ALONE = "permessage-deflate; client_no_context_takeover"
LENGTHS = "/lengths"


@functools.cache
def packed(size: int) -> bytes:
    """A frame with a message of so many equal letters, which needs none before it."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    payload = deflater.compress(b"a" * size) + deflater.flush(zlib.Z_SYNC_FLUSH)
    return frame(TEXT, payload.removesuffix(b"\x00\x00\xff\xff"), reserved=COMPRESSED)


def inflated_messages(server: Server, count: int) -> Spent:
    """One connection, each of whose messages is a thousand times what was sent of it."""
    spent = Spent(connections=1, inflated=count * LARGEST)
    headers = [("Sec-WebSocket-Extensions", ALONE)]
    with server.connect(timeout=PATIENCE) as client:
        lengths = Lengths(WebSocket(client, LENGTHS, headers=headers))
        spent.sent += len(handshake(LENGTHS, headers=headers))
        for _ in range(count):
            assert say(client, packed(LARGEST), spent)
        say(client, close_frame(1000), spent)
        for _ in range(count):
            assert lengths.read() == LARGEST
    return spent


def compressed_connections(server: Server, count: int) -> Spent:
    """Each sends one small message, and is answered: it has what compresses, and what inflates."""
    spent = Spent(inflated=count * 100)
    opening = handshake(LENGTHS, headers=[("Sec-WebSocket-Extensions", "permessage-deflate")])
    with many(server, count, spent) as clients:
        for client in clients:
            assert say(client, opening, spent)
        opened = [Lengths(WebSocket.over(client, client.read_response())) for client in clients]
        for client in clients:
            assert say(client, packed(100), spent)
        assert all(lengths.read() == 100 for lengths in opened)
    return spent


class Lengths:
    """What the application tells of each message, in one that is long enough to be compressed."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)

    def read(self) -> int:
        return int(self._inflater.decompress(self._socket.read_frame().payload + b"\x00\x00\xff\xff"))


ATTACKS: dict[str, Callable[[Server, int], Spent]] = {
    attack.__name__: attack for attack in (inflated_messages, compressed_connections)
}
