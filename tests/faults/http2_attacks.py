"""Clients of HTTP/2 that mean harm: as `attacks`, in raw frames.

Not a judge of costs (`run.py` is), but of what came: what is due is asserted here.
Invariant: every wait has a deadline, and what is waited for is what the server does.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from attacks import PATIENCE, Spent, begun, many, say, settle, tasks
from harness import Server, frames
from harness.frames import CALM, DATA, ENDS_HEAD, ENDS_STREAM, HEADERS, FrameClient, frame
from websocket_attacks import LENGTHS, packed

# Waits for a second, and then ends by itself.
SLOW = "/events?quiet=1"
START = frames.head([(":method", "GET"), (":scheme", "http"), (":authority", "test"), (":path", "/echo")])
# An entry of 4 KiB, or of a name alone, in the table of names and values; then a byte that is it, once more.
LARGE = b"\x40\x01a\x7f\xa1\x1e" + b"v" * 4000
EMPTY = b"\x40\x01a\x00"
AGAIN = b"\xbe"
# A client's settings: the window that each of its streams begins with.
FIRST_WINDOW = 4
# Streams that a connection may break off at once, and what comes before it is heard.
MOST_STREAMS = 250


def ids(count: int, first: int = 1) -> range:
    return range(first, first + 2 * count, 2)


def head_of(stream: int, *pieces: bytes) -> bytes:
    """A head in so many frames, with which its stream ends."""
    kinds = [HEADERS] + [frames.CONTINUATION] * (len(pieces) - 1)
    flags = [ENDS_STREAM] + [0] * (len(pieces) - 1)
    flags[-1] |= ENDS_HEAD
    return b"".join(map(frame, kinds, flags, [stream] * len(pieces), pieces))


def sliced(block: bytes, size: int = 16_384) -> list[bytes]:
    return [block[at : at + size] for at in range(0, len(block), size)]


def idle_http2(server: Server, count: int, beginning: bytes = frames.PREFACE) -> Spent:
    """They begin, and that is all."""
    spent = Spent()
    with many(server, count, spent) as clients:
        for client in clients:
            assert say(client, beginning, spent)
        assert not any(b"HTTP/1.1" in client.read_to_any_end() for client in clients)
    return spent


def idle_http2_with_settings(server: Server, count: int) -> Spent:
    """The same, when a first request is all that is missing."""
    return idle_http2(server, count, frames.PREFACE + frames.settings())


def idle_http2_in_pieces(server: Server, count: int) -> Spent:
    """The same, of clients that begin with less than tells what they speak."""
    spent = Spent()
    with many(server, count, spent) as clients:
        for piece in (frames.PREFACE[:3], frames.PREFACE[3:] + frames.settings()):
            for client in clients:
                assert say(client, piece, spent)
        assert not any(b"HTTP/1.1" in client.read_to_any_end() for client in clients)
    return spent


def streams_broken_off(server: Server, count: int) -> Spent:
    """Each connection asks 5,000 times, and breaks off each time at once."""
    spent, before = Spent(), begun(server)
    for _ in range(count):
        with server.connect(timeout=PATIENCE) as socket:
            client = FrameClient(socket)
            sent = client.flood(b"".join(frames.asks(each, SLOW) + frames.reset(each) for each in ids(5000)))
            spent.connections, spent.sent, spent.writes = (
                spent.connections + 1,
                spent.sent + sent,
                spent.writes + 1,
            )
            assert client.goodbye() == CALM
    spent.requests = begun(server) - before
    assert spent.requests <= count * MOST_STREAMS, spent
    settle(server)
    return spent


def refused(client: FrameClient, count: int) -> None:
    """Each of so many heads is answered by 431, or the first that is far too large ends the connection."""
    answered = 0
    while answered < count:
        came = next(each for each in client.frames() if each.kind in (HEADERS, frames.GOAWAY))
        if came.kind == frames.GOAWAY:
            assert came.code == CALM
            return
        assert came.headers[":status"] == "431"
        answered += 1


def packed_heads(server: Server, count: int, entry: bytes = LARGE, times: int = 16_000) -> Spent:
    """Heads of which each byte stands for 4 KiB, on 20 streams of each connection."""
    spent, before = Spent(), begun(server)
    data = b"".join(head_of(each, *sliced(START + entry + AGAIN * times)) for each in ids(20))
    for _ in range(count):
        with server.connect(timeout=PATIENCE) as socket:
            client = FrameClient(socket)
            spent.connections, spent.sent = spent.connections + 1, spent.sent + client.flood(data)
            spent.writes += 1 + len(data) // 16_384
            refused(client, 20)
    assert begun(server) == before, "a head that is too large has reached the application"
    return spent


def pinned_streams(server: Server, count: int) -> Spent:
    """A hundred streams of each connection, each of many headers, for answers that have no room."""
    spent = Spent()
    start = frames.head([(":method", "GET"), (":scheme", "http"), (":authority", "test")])
    block = start + frames.head([(":path", "/stream?n=1048576")]) + EMPTY + AGAIN * 90
    for _ in range(count):
        with server.connect(timeout=PATIENCE) as socket:
            client = FrameClient(socket, (FIRST_WINDOW, 0))
            sent = client.flood(b"".join(head_of(each, block) for each in ids(100)))
            spent.connections, spent.sent, spent.writes = (
                spent.connections + 1,
                spent.sent + sent,
                spent.writes + 2,
            )
            broken = {client.until(frames.RESET).stream for _ in range(100)}
            assert len(broken) == 100
            assert client.goodbye() == CALM
    settle(server)
    return spent


def held_streams(server: Server, count: int) -> Spent:
    """A hundred uploads of each connection that never come, their heads of 24 KiB packed into a few bytes."""
    spent = Spent()
    asks = [(":method", "POST"), (":scheme", "http"), (":authority", "test"), (":path", "/messages")]
    start = frames.head(asks)
    heads = [frame(HEADERS, ENDS_HEAD, each, start + (AGAIN * 6)) for each in ids(99, 3)]
    data = frame(HEADERS, ENDS_HEAD, 1, start + LARGE) + b"".join(heads)
    with contextlib.ExitStack() as held:
        for _ in range(count):
            socket = held.enter_context(server.connect(timeout=PATIENCE))
            spent.connections, spent.writes = spent.connections + 1, spent.writes + 1
            spent.sent += FrameClient(socket).flood(data)
        until = time.monotonic() + PATIENCE
        while tasks(server) < 100 * count:
            assert time.monotonic() < until, "not all uploads have begun"
    settle(server)
    return spent


def websockets_of_http2(server: Server, count: int) -> Spent:
    """Fifty compressed WebSockets on each connection, each of which has sent and been sent a message."""
    spent = Spent(inflated=count * 50 * 100)
    asks = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":authority", "test")]
    offer = [("sec-websocket-version", "13"), ("sec-websocket-extensions", "permessage-deflate")]
    start = frames.head([*asks, (":path", LENGTHS), *offer])
    opening = b"".join(frame(HEADERS, ENDS_HEAD, each, start) for each in ids(50))
    said = b"".join(frame(DATA, 0, each, packed(100)) for each in ids(50))
    with contextlib.ExitStack() as held:
        for _ in range(count):
            client = FrameClient(held.enter_context(server.connect(timeout=PATIENCE)))
            spent.connections, spent.writes = spent.connections + 1, spent.writes + 2
            spent.sent += client.flood(opening)
            assert set(client.answers(50).values()) == {"200"}
            spent.sent += client.flood(said)
            heard = {client.until(DATA).stream for _ in range(50)}
            assert len(heard) == 50
    settle(server)
    return spent


def windows_of_a_byte(server: Server, count: int) -> Spent:
    """Megabytes that are taken byte by byte, 50 at a time."""
    spent = Spent()
    for _ in range(count):
        with server.connect(timeout=PATIENCE) as socket:
            client = FrameClient(socket, (FIRST_WINDOW, 0))
            came = 0
            for number in range(1, 100, 2):
                socket.send(frames.asks(number, "/stream?n=1048576") + frames.window(number, 1))
            spent.connections += 1
            for each in client.frames():
                if each.kind == frames.GOAWAY:
                    assert each.code == CALM
                    break
                if each.kind == DATA:
                    more = frames.window(each.stream, 1)
                    spent.sent, spent.writes, came = spent.sent + len(more), spent.writes + 1, came + 1
                    socket.try_send(more)
            assert 50 <= came <= 1000, came
    return spent


ATTACKS: dict[str, Callable[[Server, int], Spent]] = {
    attack.__name__: attack
    for attack in (
        idle_http2,
        idle_http2_with_settings,
        idle_http2_in_pieces,
        streams_broken_off,
        packed_heads,
        pinned_streams,
        held_streams,
        websockets_of_http2,
        windows_of_a_byte,
    )
}
