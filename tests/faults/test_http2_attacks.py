"""What is done to break HTTP/2: rows 52 to 72 of the faults, in raw frames, beside a canary.

Not what one frame does out of its place, which h2spec tries (`make h2spec`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attacks
import http2_attacks
import pytest
from corpus import PATHS, serving
from harness import Server, frames
from harness.frames import CALM, DATA, ENDS_HEAD, ENDS_STREAM, HEADERS, FrameClient, frame
from http2_attacks import AGAIN, EMPTY, LARGE, MOST_STREAMS, SLOW, START, head_of, ids, sliced

from bridgehead.testing import Canary, Folder

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    ledger = Folder(tmp_path_factory.mktemp("ledger"))
    options = ["--timeout-write", "1s", "--timeout-header", "2s", "--log-level", "debug"]
    # Some handlers sleep on when their clients are gone.
    options += ["--timeout-graceful-shutdown", "3s"]
    with (
        serving(ledger, *options) as server,
        Canary(server.url, PATHS, ledger=ledger) as canary,
    ):
        yield server
        canary.wait_for(3)
        canary.check().assert_kept()
    assert "panicked" not in server.stderr


@pytest.fixture
def client(server: Server) -> Iterator[FrameClient]:
    with server.connect(timeout=60.0) as client:
        yield FrameClient(client)


# --- streams that are broken off


def test_streams_that_are_broken_off_at_once_are_few_and_end_their_connection(server: Server) -> None:
    http2_attacks.streams_broken_off(server, 2)


# What has the server break a stream off, behind a request of it that is complete.
BREAKS: dict[str, Callable[[int], bytes]] = {
    "a window of nothing": lambda stream: frames.window(stream, 0),
    "a window of too much": lambda stream: frames.window(stream, 2**31 - 1),
    "a priority that is too short": lambda stream: frame(frames.PRIORITY, 0, stream, bytes(4)),
    "a priority of itself": lambda stream: frame(
        frames.PRIORITY, 0, stream, stream.to_bytes(4, "big") + b"\x10"
    ),
    "data behind its end": lambda stream: frame(DATA, 0, stream, b"x"),
    "a head behind its end": lambda stream: frames.asks(stream),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS.keys())
def test_a_server_that_is_made_to_break_off_streams_ends_the_connection(
    server: Server, client: FrameClient, broken: Callable[[int], bytes]
) -> None:
    before = attacks.begun(server)
    client.flood(b"".join(frames.asks(each, SLOW) + broken(each) for each in ids(5000)))
    assert client.goodbye() != frames.NO_ERROR
    assert attacks.begun(server) - before <= MOST_STREAMS
    attacks.settle(server)


# --- heads


@pytest.mark.parametrize("piece", [b"", b"\x90", frames.head([("x-piece", "p" * 500)])])
def test_a_head_in_frames_without_end_ends_its_connection(client: FrameClient, piece: bytes) -> None:
    rest = frame(frames.CONTINUATION, 0, 1, piece)
    client.flood(frame(HEADERS, ENDS_STREAM, 1, START) + rest * 10_000)
    assert client.goodbye() == CALM


@pytest.mark.parametrize(("entry", "count"), [(LARGE, 16_000), (EMPTY, 16_000), (LARGE, 200)])
def test_a_byte_that_stands_for_much_is_refused_by_what_it_stands_for(
    server: Server, entry: bytes, count: int
) -> None:
    before = server.memory_peak()
    http2_attacks.packed_heads(server, 1, entry, count)
    assert server.memory_peak() - before < 8 * MEBIBYTE


def test_streams_that_are_pinned_by_windows_of_nothing_end_in_their_time(server: Server) -> None:
    before = server.memory_peak()
    http2_attacks.pinned_streams(server, 1)
    assert server.memory_peak() - before < 32 * MEBIBYTE


def test_crumbs_of_a_cookie_are_one_header_and_have_a_number(client: FrameClient) -> None:
    crumb = b"\x60\x02a=" + AGAIN * 199
    client.client.send(head_of(1, START + crumb) + head_of(3, START + crumb + AGAIN))
    assert client.answers(2) == {1: "200", 3: "431"}


@pytest.mark.parametrize("count", [24_577, 40_000])
def test_a_head_of_names_that_are_all_others_is_too_much(client: FrameClient, count: int) -> None:
    names = b"".join(b"\x00\x06" + b"%06d" % number + b"\x00" for number in range(count))
    client.flood(head_of(1, *sliced(START + names)))
    assert client.goodbye() == CALM


WRONG: dict[str, list[tuple[str, str]]] = {
    "an upper-case name": [("X-Upper", "1")],
    "a line feed in a value": [("x-feed", "a\nb")],
    "a carriage return in a value": [("x-return", "a\rb")],
    "a null in a value": [("x-null", "a\0b")],
    "a connection": [("connection", "close")],
    "a transfer coding": [("transfer-encoding", "chunked")],
    "an upgrade": [("upgrade", "h2c")],
    "other trailers": [("te", "gzip")],
    "a late pseudo-header": [("x-early", "1"), (":path", "/echo")],
    "an unknown pseudo-header": [(":nonsense", "1")],
    "two lengths": [("content-length", "0"), ("content-length", "1")],
    "a length and no body": [("content-length", "5")],
    "two hosts": [("host", "test"), ("host", "test")],
    "a blank before a value": [("x-padded", " a")],
    "a tab behind a value": [("x-padded", "a\t")],
    "a host that is none": [("host", "a b")],
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG.keys())
def test_a_head_that_is_not_in_order_never_reaches_the_application(
    server: Server, client: FrameClient, headers: list[tuple[str, str]]
) -> None:
    begun = attacks.begun(server)
    client.client.send(frames.asks(1, headers=headers))
    # Letters that there are not in names and values are no packing of headers either, and end the connection.
    if client.answer(1) in ("reset", "400"):
        client.client.send(frames.asks(3))
        assert client.answer(3) == "200"
        begun += 1
    assert attacks.begun(server) == begun


PSEUDO = {":method": "GET", ":scheme": "http", ":authority": "test", ":path": "/echo"}


@pytest.mark.parametrize(
    "changed",
    [
        {":method": None},
        {":scheme": None},
        {":path": None},
        {":path": ""},
        {":path": "echo"},
        {":path": "/ech\xf6"},
        {":path": "/echo?\xf6"},
        {":method": ""},
        {":method": "G T"},
        {":authority": "a b"},
    ],
)
def test_a_head_without_what_is_due_never_reaches_the_application(
    server: Server, client: FrameClient, changed: dict[str, str | None]
) -> None:
    begun = attacks.begun(server)
    headers = [(name, value) for name, value in {**PSEUDO, **changed}.items() if value is not None]
    client.client.send(frame(HEADERS, ENDS_HEAD | ENDS_STREAM, 1, frames.head(headers)))
    assert client.answer(1) in ("reset", "400", "goodbye")
    assert attacks.begun(server) == begun


def test_of_two_hosts_the_authority_is_the_one() -> None:
    with Server("asgi_app:app") as shows, shows.connect() as socket:
        client = FrameClient(socket)
        client.client.send(frames.asks(1, "/scope", headers=[("host", "other")]))
        shown = json.loads(client.body(1))["headers"]
        assert shown == [["bytes:host", "bytes:test"]]


@pytest.mark.parametrize(("length", "bodies"), [("5", [b"abc"]), ("3", [b"abc", b"de"])])
def test_a_body_of_another_length_than_was_said_is_no_body(
    server: Server, client: FrameClient, length: str, bodies: list[bytes]
) -> None:
    client.client.send(
        frames.asks(1, "/messages", method="POST", headers=[("content-length", length)], ends=False)
        + b"".join(frame(DATA, 0, 1, body) for body in bodies)
        + frame(DATA, ENDS_STREAM, 1)
    )
    assert client.answer(1) == "reset"
    attacks.settle(server)


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ([(":method", "GET"), (":path", "/admin"), (":authority", "evil"), ("x-late", "1")], "200"),
        ([("x-late", "1"), (":path", "/admin")], "reset"),
        ([("connection", "close")], "reset"),
        ([(f"x-{number}", "1") for number in range(33)], "400"),
    ],
)
def test_trailers_are_no_way_into_a_scope(
    server: Server, client: FrameClient, headers: list[tuple[str, str]], answer: str
) -> None:
    """`h2` drops pseudo-headers of trailers without a word: docs/http2.md says so."""
    upload = frames.asks(1, "/messages", method="POST", ends=False) + frame(DATA, 0, 1, b"abc")
    client.client.send(upload + frame(HEADERS, ENDS_HEAD | ENDS_STREAM, 1, frames.head(headers)))
    assert client.answer(1) == answer
    if answer == "200":
        assert re.search(rb'"bytes": ?3\b', client.body(1))
    attacks.settle(server)


# --- frames that are no requests


FLOODS = {
    "pings": frame(frames.PING, 0, 0, bytes(8)),
    "settings": frames.settings((4, 65_535)),
    "priorities": frame(frames.PRIORITY, 0, 1, b"\0\0\0\x03\x01"),
    "frames of no kind": frame(0xFA, 0, 0, b"x"),
    "windows": frames.window(0, 1),
    "empty data": frame(DATA, 0, 1),
    "data of a byte": frame(DATA, 0, 1, b"x"),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_a_flood_ends_its_connection_before_it_is_read_for_long(client: FrameClient, flood: bytes) -> None:
    client.client.send(frames.asks(1, "/sink?pause=30", method="POST", ends=False))
    sent = client.flood(flood * 100_000)
    assert client.goodbye() in (CALM, frames.FLOW_CONTROL_ERROR)
    assert sent < 2 * MEBIBYTE


# A stream that the server has broken off takes these without a word, until `h2` forgets it after a second.
TO_NOBODY = {
    "windows of it": frames.window(1, 1),
    "heads": frame(HEADERS, ENDS_HEAD, 1),
    "ends": frame(HEADERS, ENDS_HEAD | ENDS_STREAM, 1),
    "ends of data": frame(DATA, ENDS_STREAM, 1),
    "heads in parts": frame(HEADERS, 0, 1) + frame(frames.CONTINUATION, ENDS_HEAD, 1),
    **{f"{name} behind heads": frame(HEADERS, ENDS_HEAD, 1) + flood * 4 for name, flood in FLOODS.items()},
}


@pytest.mark.parametrize("flood", [*FLOODS.values(), *TO_NOBODY.values()], ids=[*FLOODS, *TO_NOBODY])
def test_a_flood_behind_a_stream_that_is_over_ends_its_connection_as_soon(
    client: FrameClient, flood: bytes
) -> None:
    upload = frames.asks(1, "/sink?pause=30", method="POST", ends=False)
    # No trailers: an end is due with them.
    client.client.send(upload + frame(HEADERS, ENDS_HEAD, 1, frames.head([("x-late", "1")])))
    assert client.until(frames.RESET).code == frames.PROTOCOL_ERROR
    client.flood(flood * 20_000)
    # The second where `h2` has forgotten the stream before a thousand frames were read.
    assert client.goodbye() in (CALM, frames.PROTOCOL_ERROR)


def test_a_reset_of_what_never_began_ends_its_connection(client: FrameClient) -> None:
    client.flood(frames.reset(1) * 1000)
    assert client.goodbye() == frames.PROTOCOL_ERROR


def test_pings_that_nobody_reads_the_answers_of_cost_little(server: Server) -> None:
    before = server.memory_peak()
    with server.connect(timeout=60.0, receive_buffer=4096) as socket:
        client = FrameClient(socket)
        pings = frame(frames.PING, 0, 0, bytes(8)) * 1000
        for _ in range(100):
            if not socket.try_send(pings):
                break
        assert client.goodbye() == CALM
    assert server.memory_peak() - before < 4 * MEBIBYTE


@pytest.mark.parametrize("pair", [(5, 0), (5, 2**24), (4, 2**31), (2, 2)])
def test_settings_that_there_are_not_end_the_connection(server: Server, pair: tuple[int, int]) -> None:
    with server.connect() as socket:
        assert FrameClient(socket, pair).goodbye() in (frames.PROTOCOL_ERROR, frames.FLOW_CONTROL_ERROR)


def test_a_window_that_shrinks_below_what_is_in_it_is_waited_for(client: FrameClient) -> None:
    client.client.send(frames.asks(1, "/stream?n=131072"))
    came = client.until(DATA, 1).payload
    client.client.send(frames.settings((4, 0)))
    while len(came) < 65_535:
        came += client.until(DATA, 1).payload
    client.client.send(frames.window(0, 2**20) + frames.window(1, 65_535 + 1000))
    while len(came) < 65_535 + 1000:
        came += client.until(DATA, 1).payload
    assert len(came) == 65_535 + 1000
    client.client.send(frames.settings((4, 2**20)))
    assert len(came) + len(client.body(1)) == 131_072


@pytest.mark.parametrize("attack", [http2_attacks.held_streams, http2_attacks.websockets_of_http2])
def test_the_memory_of_streams_that_held_much_is_given_back_when_their_connections_have_ended(
    attack: Callable[[Server, int], attacks.Spent], tmp_path: Path
) -> None:
    with serving(Folder(tmp_path)) as server:
        attack(server, 1)
        before = server.memory()
        attack(server, 6)
        held = server.memory_peak() - before
        assert held > 12 * MEBIBYTE
        until = time.monotonic() + attacks.PATIENCE
        while server.memory() - before > held / 2:
            assert time.monotonic() < until, (server.memory() - before, held)
            time.sleep(0.05)


def test_windows_of_a_byte_are_no_way_to_be_sent_bytes_one_by_one(server: Server) -> None:
    http2_attacks.windows_of_a_byte(server, 1)


# --- more than may be


def test_streams_above_the_limit_are_refused_and_may_be_tried_again(
    server: Server, client: FrameClient
) -> None:
    client.client.send(b"".join(frames.asks(each, SLOW) for each in ids(300)))
    came = client.answers(300)
    assert sorted(came.values()) == ["200"] * 100 + ["reset"] * 200
    assert set(client.codes.values()) == {frames.REFUSED_STREAM}
    server.wait_line(
        f":{client.client.port}: Bad Request: more requests at a time than are allowed", count=50
    )
    attacks.settle(server)
    for first in (601, 801):
        client.client.send(b"".join(frames.asks(each) for each in ids(100, first)))
        assert set(client.answers(100).values()) == {"200"}


def test_the_room_of_streams_that_were_broken_off_is_given_back(server: Server) -> None:
    """Uploads and downloads, each left in the middle; then an upload larger than the connection's window."""
    with server.connect(timeout=60.0) as socket:
        client = FrameClient(socket)
        client.client.send(frames.window(0, 2**28))
        for number, each in enumerate(ids(90)):
            if number % 2:
                upload = frames.asks(each, SLOW, method="POST", ends=False)
                client.client.send(upload + frame(DATA, 0, each, b"u" * 16_384) * 3 + frames.reset(each))
            else:
                client.client.send(frames.asks(each, "/stream?n=1048576"))
                client.until(DATA, each)
                client.client.send(frames.reset(each))
        attacks.settle(server)
        client.client.send(frames.asks(999, "/messages", method="POST", ends=False))
        left, room = 16 * MEBIBYTE, 65_535
        while left:
            while room < 16_384:
                room += int.from_bytes(client.until(frames.WINDOW, 999).payload, "big")
            client.client.send(frame(DATA, ENDS_STREAM if left == 16_384 else 0, 999, b"u" * 16_384))
            left, room = left - 16_384, room - 16_384
        assert re.search(rb'"bytes": ?16777216', client.body(999))


def test_an_upgrade_to_http2_is_served_as_the_request_that_it_also_is(server: Server) -> None:
    upgrade = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")]
    with server.connect() as client:
        for _ in range(2):
            answer = client.ask("/echo", method="POST", headers=upgrade, body=b"once")
            assert (answer.status, answer.body) == (200, b"once")
