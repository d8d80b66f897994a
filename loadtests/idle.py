"""Connections that have asked once and ask nothing more, by the thousand.

Not what they cost (`scale.py`, `special.py`).

Invariant: a figure of idle connections is of connections that live: whoever measures them asks afterwards.
"""

import socket
from contextlib import ExitStack

ASK = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
AT_ONCE = 100  # connections that are made before their answers are read
PATIENCE = 20.0  # seconds


def connected(port: int, count: int, stack: ExitStack) -> list[socket.socket]:
    """So many, each with its answer."""
    clients: list[socket.socket] = []
    while len(clients) < count:
        few = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
            for _ in range(min(AT_ONCE, count - len(clients)))
        ]
        for client in few:
            client.sendall(ASK)
        for client in few:
            if not client.recv(4096).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("wrong answer")
        clients += few
    return clients


def closed(clients: list[socket.socket]) -> int:
    """How many the server has closed."""
    return sum(map(_has_ended, clients))


def _has_ended(client: socket.socket) -> bool:
    """Behind what is left of its answer, which some servers send in two parts."""
    client.setblocking(False)
    try:
        while client.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def told(clients: list[socket.socket]) -> str:
    """What makes a figure void, for a cell of a table; nothing, if they all live."""
    gone = closed(clients)
    return f"{gone:,} of {len(clients):,} were closed" if gone else ""
