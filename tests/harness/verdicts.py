"""What a server may do with a request it must not serve.

Not a list of bad requests: those stand in the tests.
Invariant: a refused request is answered once, with the reason and our headers, and closes its connection.
What followed it never runs.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING

from harness.client import request
from harness.server import UVICORN

if TYPE_CHECKING:
    from harness.client import Client
    from harness.server import Server

_names = itertools.count()


def seen(server: Server) -> list[str]:
    """Targets the application has been called with, oldest first."""
    targets = json.loads(server.ask("/seen").body)
    assert isinstance(targets, list)
    return targets


def assert_refused(server: Server, data: bytes, statuses: set[int], *, byte_by_byte: bool = False) -> None:
    """`data` gets one error answer and the end; a request right behind it is not answered and not run."""
    marker = f"/smuggled/{next(_names)}"
    with server.connect() as client:
        if byte_by_byte:
            _trickle(client, data)
        else:
            client.send(data + request(marker))
        raw = client.read_to_any_end()
    answers = [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", raw)]
    if byte_by_byte and not answers:
        # Bytes were under way when the server closed: the kernel's reset may overtake the answer.
        pass
    else:
        assert len(answers) == 1, raw
        assert answers[0] in statuses, raw
        head, _, body = raw.partition(b"\r\n\r\n")
        assert b"\r\nconnection: close" in head.lower(), raw
        assert UVICORN or (b"\r\nserver: bridgehead" in head and body), f"without a word: {raw!r}"
    assert marker not in seen(server)


def _trickle(client: Client, data: bytes) -> None:
    for index in range(len(data)):
        if client.is_readable() or not client.try_send(data[index : index + 1]):
            break
