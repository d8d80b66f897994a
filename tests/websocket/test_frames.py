"""Frames by bytes: what breaks the protocol is told, whatever is large is bounded, pings are answered."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import pytest
from harness import Server, WebSocket
from harness.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, close_frame, frame

LIMIT = 100_000
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("websocket_app:app", "--ws-max-size", str(LIMIT), "--no-access-log") as server:
        yield server


@pytest.fixture
def note() -> str:
    """What this test's application is called."""
    return f"end-{next(NUMBERS)}"


@pytest.fixture
def socket(server: Server, note: str) -> Iterator[WebSocket]:
    with server.connect() as client:
        yield WebSocket(client, f"/size?note={note}")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(frame(TEXT, b"x", mask=None), 1002, id="no mask"),
        pytest.param(frame(3, b"x"), 1002, id="unknown data frame"),
        pytest.param(frame(11, b"x"), 1002, id="unknown control frame"),
        pytest.param(frame(TEXT, b"x", reserved=4), 1002, id="a compressed one"),
        pytest.param(frame(TEXT, b"x", reserved=2), 1002, id="second reserved bit"),
        pytest.param(frame(PING, b"x", fin=False), 1002, id="fragmented ping"),
        pytest.param(frame(PING, bytes(126)), 1002, id="long ping"),
        pytest.param(frame(CONTINUATION, b"x"), 1002, id="continuation of nothing"),
        pytest.param(frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"), 1002, id="text within a text"),
        pytest.param(frame(TEXT, b"\xff"), 1007, id="no UTF-8"),
        pytest.param(frame(TEXT, b"\xed\xa0\x80"), 1007, id="a surrogate"),
        pytest.param(frame(TEXT, b"\xe2\x82"), 1007, id="half a letter"),
        pytest.param(frame(TEXT, b"\xe2", fin=False) + frame(CONTINUATION, b"\x28"), 1007, id="two halves"),
        pytest.param(frame(CLOSE, b"x"), 1002, id="a close of one byte"),
        pytest.param(close_frame(1006), 1002, id="1006"),
        pytest.param(close_frame(1005), 1002, id="1005"),
        pytest.param(close_frame(999), 1002, id="999"),
        pytest.param(close_frame(2000), 1002, id="2000"),
        pytest.param(frame(CLOSE, b"\x03\xe8\xff"), 1007, id="a reason that is no UTF-8"),
        pytest.param(b"\x82\xfe\x00\x05" + bytes(9), 1002, id="a length longer written than it has to be"),
        pytest.param(b"\x82\xff" + struct.pack("!Q", 2**63) + bytes(4), 1002, id="a length of 64 bits"),
        pytest.param(
            b"\x82\xff" + struct.pack("!Q", 2**63 - 1) + bytes(4), 1009, id="more than there is memory"
        ),
        pytest.param(frame(BINARY, bytes(LIMIT + 1)), 1009, id="a byte too much"),
        pytest.param(
            frame(BINARY, bytes(LIMIT), fin=False) + frame(CONTINUATION, b"x"),
            1009,
            id="in two, a byte too much",
        ),
        pytest.param(
            frame(BINARY, fin=False) + frame(CONTINUATION, fin=False) * 1024,
            1008,
            id="empty frames without end",
        ),
    ],
)
def test_what_breaks_the_protocol_is_told_once_and_the_application_hears_of_it(
    server: Server, socket: WebSocket, note: str, data: bytes, code: int
) -> None:
    assert socket.echo("warm") == "4"
    socket.client.try_send(data)
    assert socket.read_frame().closing[0] == code
    socket.client.half_close_quietly()
    assert socket.client.read_to_any_end() == b""
    assert server.note(note)["code"] == code


def test_messages_come_whole_in_whatever_frames_they_came(socket: WebSocket) -> None:
    socket.send(frame(TEXT, "hé".encode(), fin=False) + frame(PING, b"between"))
    socket.send(frame(CONTINUATION, fin=False) + frame(CONTINUATION, b"!"))
    assert (pong := socket.read_frame()).opcode == PONG
    assert pong.payload == b"between"
    assert socket.read_text() == "3"
    for size in (0, 1, 125, 126, 127, 65_535, 65_536, LIMIT):
        socket.send(frame(BINARY, bytes(size)))
        assert socket.read_text() == str(size)


def test_a_message_may_come_byte_by_byte(socket: WebSocket) -> None:
    for byte in frame(TEXT, "κόσμε".encode()):
        socket.send(bytes([byte]))
    assert socket.read_text() == "5"


def test_a_hundred_thousand_frames_of_a_byte_are_a_message(socket: WebSocket) -> None:
    one = frame(CONTINUATION, b"x", fin=False)
    socket.send(frame(BINARY, b"x", fin=False) + one * (LIMIT - 2) + frame(CONTINUATION, b"x"))
    assert socket.read_text() == str(LIMIT)


def test_each_ping_is_answered_by_its_own_pong_and_pongs_by_nothing(socket: WebSocket) -> None:
    socket.send(frame(PONG, b"unasked") + b"".join(frame(PING, b"%d" % number) for number in range(10)))
    assert [socket.read_frame().payload for _ in range(10)] == [b"%d" % number for number in range(10)]
    assert socket.echo("on") == "2"


def test_a_flood_of_pings_that_nobody_reads_the_answers_of_costs_little(server: Server) -> None:
    with server.connect(receive_buffer=4096) as client:
        socket = WebSocket(client, "/size")
        assert socket.echo("warm") == "4"
        before = server.memory_peak()
        flood = frame(PING, bytes(125)) * 100_000
        assert client.send_until_paused(flood) == len(flood)
        assert server.memory_peak() - before < 4 * 1024**2
        socket.send(frame(TEXT, b"and on"))
        count = 0
        while (answer := socket.read_frame()).opcode == PONG:
            count += 1
        assert answer.payload == b"6"
        # The first are answered each, the last one is.
        assert 1 <= count < 100_000


@pytest.mark.parametrize(
    ("data", "told", "answered"),
    [
        (close_frame(1000), {"code": 1000, "reason": ""}, (1000, "")),
        (close_frame(3999, "é" * 61), {"code": 3999, "reason": "é" * 61}, (3999, "é" * 61)),
        (frame(CLOSE), {"code": 1005, "reason": ""}, (1005, "")),
        (close_frame(1001) + frame(TEXT, b"behind"), {"code": 1001, "reason": ""}, (1001, "")),
    ],
)
def test_a_client_that_closes_is_answered_in_its_own_words(
    server: Server,
    socket: WebSocket,
    note: str,
    data: bytes,
    told: dict[str, object],
    answered: tuple[int, str],
) -> None:
    socket.send(data)
    assert socket.read_frame().closing == answered
    assert socket.client.read_to_any_end() == b""
    assert server.note(note) == {"type": "websocket.disconnect", **told}


def test_what_came_before_a_close_is_answered_before_it(server: Server, socket: WebSocket, note: str) -> None:
    socket.send(frame(BINARY, bytes(50_000)) + frame(TEXT, b"x") + close_frame(1000))
    assert [socket.read_text(), socket.read_text()] == ["50000", "1"]
    assert socket.read_frame().closing == (1000, "")
    assert server.note(note)["code"] == 1000


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_client_that_is_lost_is_1006(server: Server, socket: WebSocket, note: str, how: str) -> None:
    assert socket.echo("warm") == "4"
    getattr(socket.client, how)()
    assert server.note(note) == {"type": "websocket.disconnect", "code": 1006, "reason": ""}
