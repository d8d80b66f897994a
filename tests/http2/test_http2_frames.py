"""What single frames lead to: wrong ones to the end that RFC 9113 has for them, small windows to all of it.

Not floods of them (`test_http2_attacks.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import UVICORN, Server, frames
from harness.frames import (
    CALM,
    DATA,
    ENDS_STREAM,
    FLOW_CONTROL_ERROR,
    PROTOCOL_ERROR,
    SETTINGS,
    FrameClient,
    frame,
)

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn speaks no HTTP/2")

FRAME_SIZE_ERROR = 6
FIRST_WINDOW = 4  # of a stream, among settings


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("corpus_app:app", "--loop", loop, "--no-access-log", "--log-level", "debug") as server:
        yield server


WRONG_SIZES = {
    "a priority of 4 bytes": frame(frames.PRIORITY, 0, 1, bytes(4)),
    "a reset of 3": frame(frames.RESET, 0, 1, bytes(3)),
    "settings of 5": frame(SETTINGS, 0, 0, bytes(5)),
    "settings that are acknowledged with some": frame(SETTINGS, frames.ACK, 0, bytes(6)),
    "a ping of 7": frame(frames.PING, 0, 0, bytes(7)),
    "a window of 3": frame(frames.WINDOW, 0, 0, bytes(3)),
}


@pytest.mark.parametrize("wrong", WRONG_SIZES.values(), ids=WRONG_SIZES.keys())
def test_a_frame_of_the_wrong_size_ends_the_connection_with_its_own_code(
    server: Server, wrong: bytes
) -> None:
    with server.connect() as client:
        peer = FrameClient(client)
        client.send(frames.asks(1))
        assert peer.answer(1) == "200"
        client.send(wrong)
        assert peer.goodbye() == FRAME_SIZE_ERROR
        line = server.wait_line(f"127.0.0.1:{client.port}: ")
        assert "Bad Request: a frame has not the length that its kind has to have" in line


def test_a_first_window_that_is_larger_than_one_may_be_ends_the_connection_with_its_own_code(
    server: Server,
) -> None:
    with server.connect() as client:
        peer = FrameClient(client, (3, 100), (FIRST_WINDOW, 2**31 - 1))
        client.send(frames.asks(1))
        assert peer.answer(1) == "200"
        client.send(frames.settings((3, 100), (FIRST_WINDOW, 2**31)))
        assert peer.goodbye() == FLOW_CONTROL_ERROR
        line = server.wait_line(f"127.0.0.1:{client.port}: ")
        assert "Bad Request: the first window of streams is larger than one may be" in line


@pytest.mark.parametrize(
    "first",
    [frame(frames.PING, 0, 0, bytes(8)), frame(SETTINGS, frames.ACK), frames.window(0, 1), frames.asks(1)],
    ids=["ping", "acknowledgement", "window", "request"],
)
def test_a_connection_that_does_not_begin_with_settings_is_ended(server: Server, first: bytes) -> None:
    with server.connect() as client:
        client.send(frames.PREFACE + first)
        came = client.read_to_end()
        line = server.wait_line(f"127.0.0.1:{client.port}: ")
    assert "Bad Request: the first frame is not the client's settings" in line
    heads = []
    while came:
        size, kind = int.from_bytes(came[:3], "big") + 9, came[3]
        heads.append((kind, came[13:17] if kind == frames.GOAWAY else b""))
        came = came[size:]
    assert frames.HEADERS not in [kind for kind, _ in heads]
    assert heads[-1] == (frames.GOAWAY, PROTOCOL_ERROR.to_bytes(4, "big"))


@pytest.mark.parametrize("size", [256, 1000])
def test_who_reads_by_small_windows_has_the_whole_answer(server: Server, size: int) -> None:
    length = 1_048_576
    with server.connect() as client:
        peer = FrameClient(client, (FIRST_WINDOW, size))
        client.send(frames.asks(1, f"/stream?n={length}"))
        came = 0
        for each in peer.frames():
            assert each.kind != frames.GOAWAY, (each.code, came)
            if each.kind == DATA and each.payload:
                came += len(each.payload)
                # What was read is given back at once, of the stream and of the connection.
                client.send(frames.window(1, len(each.payload)) + frames.window(0, len(each.payload)))
            if each.kind == DATA and each.flags & ENDS_STREAM:
                break
    assert came == length


def test_a_body_of_a_byte_a_frame_without_end_ends_its_connection_though_it_is_read(server: Server) -> None:
    some = frame(DATA, 0, 1, b"x") * 1000
    with server.connect() as client, server.connect() as other:
        peer = FrameClient(client)
        client.send(frames.asks(1, "/messages", method="POST", ends=False))
        sent, room = 0, 65_535
        while client.take_in() and client.try_send(some):
            sent, room = sent + 1000, room - 1000
            # 256 KiB of framing, two bytes a frame, and a window's that may be on their way.
            assert sent <= 131_072 + 65_536, "nobody ends it"
            # A whole exchange elsewhere: the application has had the time to read.
            assert other.ask("/noread").status == 200
            while room < 1000:
                opened = next(each for each in peer.frames() if each.kind in (frames.GOAWAY, frames.WINDOW))
                if opened.kind == frames.GOAWAY:
                    assert opened.code == CALM
                    return
                # No more than it is let, so that it is the frames alone that are wrong.
                room += int.from_bytes(opened.payload, "big") if opened.stream == 1 else 0
        assert peer.goodbye() == CALM
