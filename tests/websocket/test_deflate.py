"""permessage-deflate by bytes: what is agreed on, what is compressed and how, what is inflated at most."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from harness import Server, WebSocket
from harness.websocket import BINARY, CONTINUATION, PING, PONG, TEXT, Frame, frame

LIMIT = 1_000_000
TAIL = b"\x00\x00\xff\xff"
COMPRESSED = 4
OFFER = [("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("websocket_app:app", "--ws-max-size", str(LIMIT), "--no-access-log") as server:
        yield server


@pytest.fixture
def socket(server: Server) -> Iterator[WebSocket]:
    with server.connect() as client:
        yield WebSocket(client, "/echo", headers=OFFER)


def packed(data: bytes, press: zlib._Compress | None = None) -> bytes:
    """A message's payload, by the compressor of the messages before it, or by its own."""
    press = zlib.compressobj(wbits=-12) if press is None else press
    data = press.compress(data) + press.flush(zlib.Z_SYNC_FLUSH)
    return data.removesuffix(TAIL)


def read_message(socket: WebSocket) -> tuple[list[Frame], bytes]:
    frames = [socket.read_frame()]
    while not frames[-1].fin:
        frames.append(socket.read_frame())
    return frames, b"".join(each.payload for each in frames)


@pytest.mark.parametrize(
    ("offers", "answer"),
    [
        (["permessage-deflate"], "permessage-deflate; server_max_window_bits=12"),
        (
            ["permessage-deflate; client_max_window_bits"],
            "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
        ),
        (
            [
                "permessage-deflate; server_max_window_bits=8, x",
                "permessage-deflate; server_max_window_bits=10",
            ],
            "permessage-deflate; server_max_window_bits=10",
        ),
        (["permessage-deflate; server_max_window_bits=16"], None),
        (["permessage-deflate; unknown"], None),
        (["permessage-deflate; client_no_context_takeover; client_no_context_takeover"], None),
        (["x-webkit-deflate-frame, permessage-bzip2"], None),
    ],
)
def test_an_offer_is_answered_or_declined(server: Server, offers: list[str], answer: str | None) -> None:
    with server.connect() as client:
        socket = WebSocket(client, "/echo", headers=[("Sec-WebSocket-Extensions", offer) for offer in offers])
        assert socket.response.header("sec-websocket-extensions") == answer
        assert socket.echo("in any case") == "in any case"


def test_it_can_be_switched_off() -> None:
    with (
        Server("websocket_app:app", "--ws-per-message-deflate", "false") as server,
        server.connect() as client,
    ):
        socket = WebSocket(client, "/echo", headers=OFFER)
        assert socket.response.header("sec-websocket-extensions") is None
        socket.send(frame(TEXT, packed(b"no"), reserved=COMPRESSED))
        assert socket.read_frame().closing == (1002, "a reserved bit was set")


def test_messages_are_compressed_with_what_was_said_before(socket: WebSocket) -> None:
    press, inflate = zlib.compressobj(wbits=-12), zlib.decompressobj(-12)
    sizes = []
    for number in range(50):
        words = (
            b'{"number": %d, "words": "the same in each of these messages, which is seen only once"}' % number
        )
        socket.send(frame(TEXT, packed(words, press), reserved=COMPRESSED))
        ((only,), payload) = read_message(socket)
        assert (only.opcode, only.reserved) == (TEXT, COMPRESSED)
        assert inflate.decompress(payload + TAIL) == words
        sizes.append(len(payload))
    assert sizes[-1] < sizes[0] / 2


def test_who_forgets_is_sent_each_message_by_itself(server: Server) -> None:
    forgets = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
    with server.connect() as client:
        socket = WebSocket(client, "/echo", headers=[("Sec-WebSocket-Extensions", forgets)])
        words = b"the same in each of these messages, " * 5
        payloads = set()
        for _ in range(3):
            socket.send(frame(BINARY, packed(words), reserved=COMPRESSED))
            _, payload = read_message(socket)
            assert zlib.decompressobj(-12).decompress(payload + TAIL) == words
            payloads.add(payload)
        assert len(payloads) == 1


def test_small_messages_leave_as_they_are(socket: WebSocket) -> None:
    socket.send(frame(TEXT, packed(b"little"), reserved=COMPRESSED))
    assert socket.read_text() == "little"
    assert socket.echo("plain") == "plain"


def test_a_large_message_leaves_in_fragments_and_comes_in_any(socket: WebSocket) -> None:
    words = "".join(f"{number:x} is κόσμε, " for number in range(40_000)).encode()
    payload = packed(words)
    parts = [payload[at : at + 999] for at in range(0, len(payload), 999)]
    socket.send(frame(TEXT, parts[0], fin=False, reserved=COMPRESSED) + frame(PING, b"between"))
    for part in parts[1:]:
        socket.send(frame(CONTINUATION, part, fin=False))
    socket.send(frame(CONTINUATION))
    assert socket.read_frame() == Frame(PONG, b"between")
    frames, payload = read_message(socket)
    assert len(frames) > 1
    assert [(each.opcode, each.reserved) for each in frames[:2]] == [(TEXT, COMPRESSED), (CONTINUATION, 0)]
    assert zlib.decompressobj(-12).decompress(payload + TAIL) == words
    assert socket.echo("and on") == "and on"


def test_a_stream_that_ends_within_a_message_is_followed_by_another(socket: WebSocket) -> None:
    """RFC 7692, section 7.2.3.4: a final block, and an empty one behind it; or, as some have it, nothing."""
    for behind in (b"\x00", b""):
        press = zlib.compressobj(wbits=-12)
        ended = press.compress(b"hello") + press.flush(zlib.Z_FINISH)
        socket.send(frame(TEXT, ended + behind, reserved=COMPRESSED))
        assert socket.read_text() == "hello"
    socket.send(frame(TEXT, packed(b"another"), reserved=COMPRESSED))
    assert socket.read_text() == "another"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(frame(PING, b"x", reserved=COMPRESSED), 1002, id="a compressed ping"),
        pytest.param(
            frame(TEXT, packed(b"x"), fin=False, reserved=COMPRESSED)
            + frame(CONTINUATION, reserved=COMPRESSED),
            1002,
            id="a continuation that says so again",
        ),
        pytest.param(frame(TEXT, packed(b"x"), reserved=6), 1002, id="another reserved bit"),
        pytest.param(
            frame(BINARY, b"\xff" * 20, reserved=COMPRESSED), 1007, id="nothing that can be inflated"
        ),
        pytest.param(frame(TEXT, packed(b"ab\xff"), reserved=COMPRESSED), 1007, id="no UTF-8 within"),
        pytest.param(frame(TEXT, packed(b"\xe2\x82"), reserved=COMPRESSED), 1007, id="half a letter within"),
        pytest.param(
            frame(BINARY, packed(bytes(LIMIT + 1)), reserved=COMPRESSED), 1009, id="a byte too much"
        ),
        pytest.param(
            frame(BINARY, fin=False, reserved=COMPRESSED) + frame(CONTINUATION, fin=False) * 1100,
            1008,
            id="empty frames without end",
        ),
    ],
)
def test_what_breaks_the_rules_of_compression_is_told(socket: WebSocket, data: bytes, code: int) -> None:
    socket.client.try_send(data)
    assert socket.read_frame().closing[0] == code
    socket.client.half_close_quietly()
    assert socket.client.read_to_any_end() == b""


def test_what_inflates_without_end_costs_no_more_than_the_largest_message(server: Server) -> None:
    press = zlib.compressobj(wbits=-12)
    bomb = b"".join(press.compress(bytes(1024**2)) for _ in range(1024)) + press.flush(zlib.Z_SYNC_FLUSH)
    with server.connect() as client:
        socket = WebSocket(client, "/size", headers=OFFER)
        socket.send(frame(BINARY, packed(bytes(LIMIT)), reserved=COMPRESSED))
        assert socket.read_text() == str(LIMIT)
        before = server.memory_peak()
        client.try_send(frame(BINARY, bomb, reserved=COMPRESSED))
        assert socket.read_frame().closing[0] == 1009
        assert server.memory_peak() - before < 8 * 1024**2
