"""A client whose network breaks under it: run by itself, in a network namespace of its own.

It says `ended` when the server has found out, by itself, with nobody left to tell it.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import threading
import time
from typing import Any

from bridgehead import Config, Server

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
ENDED = threading.Event()
WAITS = threading.Event()


def loopback(*, up: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP if up else 0))


async def app(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"tick", "more_body": True})
        if not WAITS.is_set():
            await asyncio.sleep(0.01)
            continue
        # One answer is on its way to nobody, and no more is written: only the system can find out.
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"
        ENDED.set()
        return


def main() -> None:
    loopback(up=True)
    options: dict[str, Any] = {"lifespan": "off", "access_log": False, "log_level": "error", "min_rate": 0}
    server = Server(Config(app, port=0, timeout_write=1.0, drain_delay=0, **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    client = socket.create_connection(server.servers[0].sockets[0].getsockname())
    client.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
    assert client.recv(4096)
    loopback(up=False)
    WAITS.set()
    print("ended" if ENDED.wait(60) else "waits for ever", flush=True)
    server.should_exit = True
    thread.join()


if __name__ == "__main__":
    main()
