"""What Bridgehead makes of a stream of bytes, told by an application that answers with what it was given.

Not a judgement, as `judges.py` is none.
Invariant: nothing depends on time: the client sends all, says that no more will come, and reads to the end.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from harness import Client, ClosedError, Response
from judges import End, Read, Reading

if TYPE_CHECKING:
    from harness import Server

# Behind each case: what a case leaves open swallows it, what a case ends lets it through.
FOLLOWER = b"GET /behind HTTP/1.1\r\nHost: test\r\n\r\n"


def read_by_us(server: Server, data: bytes, cuts: random.Random | None = None) -> Reading:
    """What was read; `cuts` says where the stream is cut into writes."""
    with server.connect() as client:
        for piece in _pieces(data, cuts):
            if not client.try_send(piece):
                break
        client.half_close_quietly()
        return _reading(client)


def read_in_parts(server: Server, data: bytes, places: Sequence[int]) -> Reading:
    """The same of a stream that is cut at these places, with a moment for each part to be read alone."""
    with server.connect() as client:
        for start, end in pairwise((0, *places, len(data))):
            if not client.try_send(data[start:end]):
                break
            os.sched_yield()
        client.half_close_quietly()
        return _reading(client)


def read_at_every_cut(
    server: Server, data: bytes, places: Sequence[int], beside: Client
) -> Iterator[tuple[int, Reading]]:
    """Cut in two at each of these places, each on its connection; `beside` is another, asked meanwhile."""
    with contextlib.ExitStack() as stack:
        # Not by `server.connect`, which would keep them all to its end.
        clients = [stack.enter_context(Client(("127.0.0.1", server.port), timeout=60)) for _ in places]
        for client, place in zip(clients, places, strict=True):
            client.try_send(data[:place])
        # A whole exchange: the server has had time to look at the first halves.
        beside.ask("/")
        for client, place in zip(clients, places, strict=True):
            if client.take_in():
                client.try_send(data[place:])
                client.half_close_quietly()
        for client, place in zip(clients, places, strict=True):
            yield place, _reading(client)


def _pieces(data: bytes, cuts: random.Random | None) -> list[bytes]:
    if cuts is None:
        return [data]
    places = [0, *sorted(cuts.randint(0, len(data)) for _ in range(cuts.choice([0, 1, 1, 2, 5]))), len(data)]
    return [data[start:end] for start, end in pairwise(places) if start < end]


def _reading(client: Client) -> Reading:
    reading = Reading()
    while True:
        try:
            answer = client.read_response()
        except ClosedError as closed:
            if closed.data:
                raise
            return reading
        if answer.status >= 200:
            _take(answer, reading)
            if reading.end is End.REFUSED:
                client.assert_closed()
                return reading


def _take(answer: Response, reading: Reading) -> None:
    if answer.status == 200:
        told = answer.json()
        headers = [(_bytes(name), _bytes(value)) for name, value in told["headers"]]
        read = Read(_bytes(told["method"]), _bytes(told["target"]), headers, _bytes(told["body"]))
        reading.requests.append(read)
        reading.end = End.CLOSED if answer.closes or answer.version == "1.0" else End.WAITING
    else:
        assert 400 <= answer.status < 500 or answer.status in (501, 505), answer
        reading.end = End.REFUSED
        reading.why = f"{answer.status} {answer.body.decode()}"


def _bytes(told: str) -> bytes:
    return told.encode("latin-1")
