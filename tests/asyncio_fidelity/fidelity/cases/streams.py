"""Streams and sockets, beside the server's own."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fidelity.account import Seen
from fidelity.registry import case


@asynccontextmanager
async def echoing() -> AsyncIterator[int]:
    """A server that sends everything back; its port."""

    serving: set[asyncio.Task[object] | None] = set()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        while line := await reader.read(1000):
            writer.write(line)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        # The clients are gone, so each of them comes to its end.
        await asyncio.gather(*filter(None, serving))


@case()
async def an_echo(seen: Seen) -> None:
    async with echoing() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for word in (b"one\n", b"two\n"):
            writer.write(word)
            await writer.drain()
            seen(await reader.readline())
        writer.write_eof()
        seen(await reader.read(), reader.at_eof())
        writer.close()
        await writer.wait_closed()


@case()
async def many_bytes(seen: Seen) -> None:
    async with echoing() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        size = 3_000_000

        async def write() -> None:
            writer.write(b"x" * size)
            await writer.drain()
            writer.write_eof()

        child = asyncio.create_task(write())
        total = 0
        while piece := await reader.read(100_000):
            total += len(piece)
        await child
        seen(total == size)
        writer.close()


@case()
async def what_readers_refuse(seen: Seen) -> None:
    reader = asyncio.StreamReader(limit=16)
    reader.feed_data(b"short")
    reader.feed_eof()
    for wait in (reader.readexactly(10), reader.readuntil(b"\n")):
        try:
            await wait
        except asyncio.IncompleteReadError as error:
            seen(error.partial, error.expected)
    long = asyncio.StreamReader(limit=16)
    long.feed_data(b"x" * 40)
    try:
        await long.readuntil(b"\n")
    except asyncio.LimitOverrunError as error:
        seen(error)


@case()
async def nobody_listens(seen: Seen) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        try:
            await asyncio.open_connection("127.0.0.1", taken.getsockname()[1])
        except ConnectionRefusedError as error:
            seen(error.errno)


@case()
async def a_unix_socket(seen: Seen) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "socket")
        server = await asyncio.start_unix_server(greet, path)
        reader, writer = await asyncio.open_unix_connection(path)
        seen(await reader.read())
        writer.close()
        server.close()


@case()
async def a_peer_resets(seen: Seen) -> None:
    import struct

    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.close()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        seen(await reader.read())
    except ConnectionResetError as error:
        seen(error.errno)
    writer.close()
    server.close()


@case()
async def a_read_is_cancelled_and_loses_nothing(seen: Seen) -> None:
    async with echoing() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.wait_for(reader.readline(), 0.01)
        except TimeoutError:
            seen("nothing yet")
        writer.write(b"line\n")
        seen(await reader.readline())
        writer.close()


@case()
async def raw_sockets(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        receiving = asyncio.create_task(loop.sock_recv(ours, 100))
        await asyncio.sleep(0)
        await loop.sock_sendall(theirs, b"raw")
        seen(await receiving)


@case()
async def readers_and_writers(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    readable, writable = asyncio.Event(), asyncio.Event()
    with ours, theirs:
        for each in (ours, theirs):
            each.setblocking(False)
        loop.add_reader(ours, readable.set)
        loop.add_writer(ours, writable.set)
        await writable.wait()
        seen(readable.is_set(), loop.remove_writer(ours), loop.remove_writer(ours))
        theirs.send(b"x")
        await readable.wait()
        seen(loop.remove_reader(ours), loop.remove_reader(ours))


@case()
async def a_protocol_of_ones_own(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    over: asyncio.Future[bytes] = loop.create_future()

    class Collect(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            seen("made", asyncio.current_task())
            transport.write(b"ping")  # type: ignore[attr-defined]
            transport.write_eof()  # type: ignore[attr-defined]
            self.received = b""

        def data_received(self, data: bytes) -> None:
            self.received += data

        def connection_lost(self, error: Exception | None) -> None:
            over.set_result(self.received)
            seen("lost", error)

    async with echoing() as port:
        await loop.create_connection(Collect, "127.0.0.1", port)
        seen(await over)


@case()
async def names_are_looked_up(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
    seen(found[0][4])
    seen(await loop.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV))


@case()
async def datagrams(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    got: asyncio.Future[bytes] = loop.create_future()

    class Receive(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, _: object) -> None:
            got.set_result(data)

    receiver, _ = await loop.create_datagram_endpoint(Receive, local_addr=("127.0.0.1", 0))
    sender, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=receiver.get_extra_info("sockname")
    )
    sender.sendto(b"datagram")
    seen(await got)
    sender.close()
    receiver.close()
