"""Clients that mean harm, by the dozen or the thousand: an attack ends when the server has dealt with it.

Not a judge of costs (`run.py` is), but of what came: what is due is asserted here.
Invariant: every wait has a deadline, and what is waited for is what the server does.
"""

from __future__ import annotations

import contextlib
import random
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness import Client, ClosedError, Server, request

# Generous, since only an attack that wins waits this long.
PATIENCE = 60.0
HEAD = b"GET /echo HTTP/1.1\r\nHost: test\r\n"
# Of a head of 32 KiB, in lines that are short enough.
UNFINISHED = HEAD + (b"a: " + b"x" * 15_000 + b"\r\n") * 2 + b"b: " + b"y" * 1500
CHUNKED = b"POST /messages HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Spent:
    """What an attack has cost whoever made it."""

    connections: int = 0
    requests: int = 0
    sent: int = 0
    writes: int = 0
    # Bytes that the server has made of compressed ones.
    inflated: int = 0


@contextlib.contextmanager
def many(server: Server, count: int, spent: Spent, **options: int) -> Iterator[list[Client]]:
    """So many connections, or as many as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 200, hard), hard))
    with contextlib.ExitStack() as held:
        clients = []
        for _ in range(count):
            client = Client(
                ("127.0.0.1", server.port), timeout=PATIENCE, receive_buffer=options.get("buffer")
            )
            clients.append(held.enter_context(client))
        spent.connections += count
        yield clients


def say(client: Client, data: bytes, spent: Spent) -> bool:
    """Send, if there is somebody who listens."""
    spent.sent += len(data)
    spent.writes += 1
    return client.try_send(data)


def told(client: Client, status: int) -> None:
    """The connection has ended, and said so. Who was still sending may have lost the words to a reset."""
    came = client.read_to_any_end()
    assert came == b"" or came.startswith(b"HTTP/1.1 %d " % status), came


def silent_clients(server: Server, count: int) -> Spent:
    """They connect, and that is all."""
    spent = Spent()
    with many(server, count, spent) as clients:
        assert all(client.read_to_any_end() == b"" for client in clients)
    return spent


def unfinished_heads(server: Server, count: int) -> Spent:
    """Each sends nearly all of the largest head, and waits."""
    spent = Spent()
    with many(server, count, spent) as clients:
        for client in clients:
            assert say(client, UNFINISHED, spent)
        for client in clients:
            assert client.read_to_any_end().startswith(b"HTTP/1.1 408 ")
    return spent


def trickling_heads(server: Server, count: int) -> Spent:
    """Each sends a byte at a time, and never the end."""
    spent = Spent()
    with many(server, count, spent) as clients:
        for client in clients:
            say(client, HEAD + b"a: ", spent)
        left = {client.socket: client for client in clients}
        until = time.monotonic() + PATIENCE
        while left:
            assert time.monotonic() < until, f"{len(left)} connections are still there"
            for closed in select.select(left, [], [], 0.05)[0]:
                told(left.pop(closed), 408)
            for client in left.values():
                say(client, b"x", spent)
    return spent


def trickling_bodies(server: Server, count: int) -> Spent:
    """Each has promised a megabyte and sends 20 bytes a second."""
    spent = Spent()
    head = b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n"
    with many(server, count, spent) as clients:
        for client in clients:
            say(client, head, spent)
        left = {client.socket: client for client in clients}
        until = time.monotonic() + PATIENCE
        while left:
            assert time.monotonic() < until, f"{len(left)} connections are still there"
            for closed in select.select(left, [], [], 0.5)[0]:
                told(left.pop(closed), 408)
            for client in left.values():
                say(client, b"x" * 10, spent)
    return spent


def chunks_of_a_byte(server: Server, count: int) -> Spent:
    """One body in `count` chunks; they are joined before they are read, let alone handed on."""
    spent = Spent(connections=1, requests=1)
    with server.connect(timeout=PATIENCE) as client:
        data = CHUNKED + b"1\r\nx\r\n" * count + b"0\r\n\r\n"
        say(client, data, spent)
        read = client.read_response().json()
    assert read["bytes"] == count
    assert read["messages"] <= count / 50, read
    return spent


def chunks_with_extensions(server: Server, count: int) -> Spent:
    """A byte in each chunk, and 200 bytes of extension."""
    spent = Spent(connections=1, requests=1)
    with server.connect(timeout=PATIENCE) as client:
        say(client, CHUNKED + (b"1;" + b"e" * 200 + b"\r\nx\r\n") * count, spent)
        told(client, 400)
    return spent


def floods_of_headers(server: Server, count: int) -> Spent:
    """A hundred thousand header lines, on each connection."""
    spent = Spent()
    with many(server, count, spent) as clients:
        for client in clients:
            say(client, HEAD + b"a: b\r\n" * 100_000 + b"\r\n", spent)
            told(client, 431)
    return spent


def clients_that_never_read(server: Server, count: int, piece: int = 65_536) -> Spent:
    """Each asks for 200 MiB, and reads none of it."""
    spent = Spent()
    with many(server, count, spent, buffer=4096) as clients:
        for client in clients:
            say(client, request(f"/stream?n=209715200&name=unread&piece={piece}"), spent)
        for _ in clients:
            # The handler's `finally`, which is reached when the server has given the client up.
            assert server.note("unread") == "ended"
        for client in clients:
            with contextlib.suppress(ConnectionError):
                client.socket.settimeout(PATIENCE)
                while client.socket.recv(65_536):
                    pass
    return spent


def clients_that_never_read_odd_pieces(server: Server, count: int) -> Spent:
    """The same, of an application whose pieces fit once and a half into what may wait."""
    return clients_that_never_read(server, count, piece=40_000)


def clients_that_never_read_small_pieces(server: Server, count: int) -> Spent:
    """The same, of one that sends lines."""
    return clients_that_never_read(server, count, piece=1000)


def resets_anywhere(server: Server, count: int, seed: str = "reset") -> Spent:
    """Each client leaves with a reset, at another point of its request or of its answer."""
    spent, chance = Spent(), random.Random(seed)
    requests = [
        request("/echo", method="POST", body=b"x" * 2000),
        request("/stream?n=1048576"),
        CHUNKED + b"5\r\nhello\r\n" * 50 + b"0\r\n\r\n",
        request("/events?quiet=0.01"),
    ]
    for _ in range(count):
        data = chance.choice(requests)
        with server.connect() as client:
            spent.connections += 1
            say(client, data[: chance.randint(1, len(data))], spent)
            if chance.random() < 0.5:
                client.is_readable(chance.choice([0.0, 0.001, 0.005]))
            client.reset()
    settle(server)
    return spent


def ends_of_idle_connections(server: Server, count: int, idle: float = 0.05) -> Spent:
    """Each asks again when its connection's time is over, or nearly: that is answered, or never ran."""
    spent, chance = Spent(), random.Random("idle")
    before = begun(server)
    ran = 0
    for _ in range(count):
        with server.connect() as client:
            spent.connections += 1
            assert client.ask("/echo").status == 200
            ran += 1
            client.is_readable(idle * chance.choice([0.9, 0.95, 0.98, 1.0, 1.01, 1.05]))
            with contextlib.suppress(ClosedError):
                if say(client, request("/echo"), spent):
                    assert client.read_response().status == 200
                    ran += 1
    spent.requests = ran
    assert begun(server) - before == ran, "a request ran, and its client was told nothing"
    return spent


def new_connections(server: Server, count: int) -> Spent:
    """A connection for each request."""
    spent = Spent()
    for _ in range(count):
        with server.connect() as client:
            spent.connections += 1
            say(client, request("/echo", headers=[("Connection", "close")]), spent)
            assert client.read_response().status == 200
    return spent


def pipelines(server: Server, count: int) -> Spent:
    """A thousand requests in one write, `count` times."""
    spent = Spent()
    for _ in range(count):
        with server.connect(timeout=PATIENCE) as client:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024 * 1024)
            spent.connections, spent.requests = spent.connections + 1, spent.requests + 1000
            say(client, request("/echo") * 1000, spent)
            assert [client.read_response().status for _ in range(1000)] == [200] * 1000
    return spent


ATTACKS: dict[str, Callable[[Server, int], Spent]] = {
    attack.__name__: attack
    for attack in (
        silent_clients,
        unfinished_heads,
        trickling_heads,
        trickling_bodies,
        chunks_of_a_byte,
        chunks_with_extensions,
        floods_of_headers,
        clients_that_never_read,
        clients_that_never_read_odd_pieces,
        clients_that_never_read_small_pieces,
        resets_anywhere,
        ends_of_idle_connections,
        new_connections,
        pipelines,
    )
}


# --- what is left


def begun(server: Server) -> int:
    count = server.ask("/begun").json()
    assert isinstance(count, int)
    return count


def tasks(server: Server) -> int:
    count = server.ask("/tasks").json()
    assert isinstance(count, int)
    return count


def settle(server: Server, *, at_most: int = 3) -> None:
    """Until no more tasks are there than an idle server has, and whoever asks."""
    until = time.monotonic() + PATIENCE
    while (left := tasks(server)) > at_most:
        assert time.monotonic() < until, f"{left} tasks are left"
        time.sleep(0.05)
