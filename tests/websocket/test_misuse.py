"""What ASGI does not allow in a WebSocket raises at the application's own `send()`, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from harness import Server, WebSocket


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("websocket_app:app", "--no-access-log") as server:
        yield server


# By message: what is raised before its acceptance, and after it; None where that is the same, or no misuse.
MISUSES = {
    "{'type': 'websocket.send', 'text': 'x'}": (
        "`websocket.send` came out of place; `websocket.accept`, `websocket.close` or "
        "`websocket.http.response.start` was due",
        "taken",
    ),
    "{'type': 'websocket.accept'}": (
        None,
        "`websocket.accept` came out of place; `websocket.send` or `websocket.close` was due",
    ),
    "{'type': 'websocket.accept', 'subprotocol': 'a\\r\\nb: c'}": (
        "subprotocol `a\\r\\nb: c` came; letters, digits and any of !#$%&'*+-.^_`|~ were due",
        None,
    ),
    "{'type': 'websocket.accept', 'subprotocol': 1}": (
        "`subprotocol` of `websocket.accept` came as int; a str, or None, was due",
        None,
    ),
    "{'type': 'websocket.accept', 'headers': [(b'a', b'b\\r\\nc: d')]}": (
        "header `a` came with byte 0x0d at 1; no control character but tab was due",
        None,
    ),
    "{'type': 'websocket.accept', 'headers': [(b'Sec-WebSocket-Protocol', b'x')]}": (
        "header `sec-websocket-protocol` came with `websocket.accept`; `subprotocol` was due in its place",
        None,
    ),
    "{'type': 'websocket.send'}": (
        "`websocket.send` came with neither; either `bytes` or `text` was due",
        "`websocket.send` came with neither; either `bytes` or `text` was due",
    ),
    "{'type': 'websocket.send', 'text': 'x', 'bytes': b'x'}": (
        None,
        "`websocket.send` came with both; either `bytes` or `text` was due",
    ),
    "{'type': 'websocket.send', 'text': b'x'}": (
        None,
        "`text` of `websocket.send` came as bytes; a str, or None, was due",
    ),
    "{'type': 'websocket.send', 'bytes': 'x'}": (
        None,
        "`bytes` of `websocket.send` came as str; bytes, or an object with a buffer of them, or None, "
        "was due",
    ),
    "{'type': 'websocket.send', 'text': chr(0xd800)}": (
        None,
        "`text` of `websocket.send` holds a lone surrogate; text that UTF-8 can hold was due",
    ),
    "{'type': 'websocket.close', 'code': 1006}": (
        None,
        "close code 1006 came; 1000 to 1003, 1007 to 1014 or 3000 to 4999 was due",
    ),
    "{'type': 'websocket.close', 'code': '1000'}": (
        None,
        "`code` of `websocket.close` came as str; an int was due",
    ),
    "{'type': 'websocket.close', 'reason': 'x' * 124}": (
        None,
        "a close reason of 124 bytes came; at most 123 fit",
    ),
    "{'type': 'websocket.http.response.start', 'status': 200}": (
        None,
        "`websocket.http.response.start` came out of place; `websocket.send` or `websocket.close` was due",
    ),
    "{'type': 'websocket.http.response.body'}": (
        "`websocket.http.response.body` came out of place; `websocket.accept`, `websocket.close` or "
        "`websocket.http.response.start` was due",
        None,
    ),
    "{'type': 'http.response.start', 'status': 200}": (
        "`http.response.start` came, which belongs to another type of scope; one of this scope was due: "
        "`websocket.accept`, `websocket.send`, `websocket.close`, `websocket.http.response.start` or "
        "`websocket.http.response.body`",
        None,
    ),
    "None": ("a message came as NoneType; a dict was due", None),
}


CASES = [
    (message, when, sentence)
    for message, sentences in MISUSES.items()
    for when, sentence in zip(("before", "after"), sentences, strict=True)
    if sentence is not None
]


@pytest.mark.parametrize(("message", "when", "sentence"), CASES)
def test_a_misuse_raises_at_the_applications_own_send_and_changes_nothing(
    server: Server, message: str, when: str, sentence: str
) -> None:
    with server.connect() as client:
        socket = WebSocket(client, f"/misuse?when={when}&message={quote(message)}")
        assert server.note("misuse") == (sentence if sentence == "taken" else f"MisuseError: {sentence}")
        if sentence == "taken":
            assert socket.read_text() == "x"
        if when == "after":
            assert socket.read_text() == "still open"
        assert socket.read_close() == (1000, "")
