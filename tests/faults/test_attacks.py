"""The attacks of `attacks.py`, with few clients; `make faults` sends many, and counts the costs."""

from __future__ import annotations

import re
import resource
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import attacks
import http2_attacks
import memory_group
import pytest
from corpus import PATHS, serving
from harness import APPS, Server, request

from bridgehead.pytest_plugin import MakeClient, ServeApp
from bridgehead.testing import Canary, Folder

MEBIBYTE = 1024 * 1024
SOURCES = Path(__file__).resolve().parents[2] / "crates"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("ledger"))


@pytest.fixture(scope="module")
def server(ledger: Folder) -> Iterator[Server]:
    """Short times, and a canary that loses nothing meanwhile."""
    options = ["--timeout-first-byte", "1s", "--timeout-header", "1s", "--timeout-write", "1s"]
    with (
        serving(ledger, *options, "--min-rate", "0") as server,
        Canary(server.url, PATHS, ledger=ledger) as canary,
    ):
        yield server
        canary.wait_for(3)
        canary.check().assert_kept()


def test_silent_clients_are_all_closed(server: Server) -> None:
    attacks.silent_clients(server, 100)


# What each is allowed: no buffers before a first byte, and a hundred times what it costs to begin HTTP/2.
@pytest.mark.parametrize(
    ("attack", "allowed"), [(attacks.silent_clients, 6 * 1024), (http2_attacks.idle_http2, 23 * 1024)]
)
def test_who_says_nothing_or_only_begins_costs_little(
    attack: Callable[[Server, int], attacks.Spent], allowed: int, tmp_path: Path
) -> None:
    # One that is new has nothing in stock that others have given back.
    with serving(Folder(tmp_path), "--timeout-first-byte", "2s", "--timeout-header", "2s") as server:
        server.ask("/echo")
        before = server.memory_peak()
        attack(server, 1000)
        assert server.memory_peak() - before < 1000 * allowed


def test_unfinished_heads_end_at_their_time_and_cost_little_more_than_they_are(server: Server) -> None:
    before = server.memory_peak()
    attacks.unfinished_heads(server, 2000)
    # 61 MiB of heads, and 22 KiB for each connection.
    assert server.memory_peak() - before < 140 * MEBIBYTE


def test_heads_that_trickle_end_at_their_time(server: Server) -> None:
    attacks.trickling_heads(server, 20)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HALF_HEADERS = b"\x00\x00\x05\x01\x04\x00\x00\x00\x01\x82"


def test_a_connection_of_http2_that_says_no_more_ends_at_its_time(server: Server) -> None:
    begun = [b"PRI * HTTP/2.0\r\n", PREFACE, PREFACE + SETTINGS[:4], PREFACE + SETTINGS + HALF_HEADERS]
    with attacks.many(server, len(begun), attacks.Spent()) as clients:
        assert all(client.try_send(data) for client, data in zip(clients, begun, strict=True))
        assert all(b"HTTP/1.1 200" not in client.read_to_any_end() for client in clients)


def test_128_mebibytes_are_enough_for_a_server_that_is_told_how_many_clients_it_has(ledger: Folder) -> None:
    """A head of 31 KiB costs 48, and a connection of HTTP/2 64 for each stream: so many fit."""
    # Where we may give it a group of that size, it has no more.
    times = ["--timeout-first-byte", "1s", "--timeout-header", "1s", "--timeout-write", "1s"]
    with memory_group.made(128 * MEBIBYTE) as group:
        join = None if group is None else group.join
        with serving(ledger, *times, "--limit-connections", "400", preexec_fn=join) as server:
            attacks.unfinished_heads(server, 600)
            attacks.clients_that_never_read(server, 100)
            http2_attacks.packed_heads(server, 2)
            http2_attacks.pinned_streams(server, 2)
            assert server.memory_peak() < 128 * MEBIBYTE
        assert group is None or group.killed == 0


def test_a_flood_of_header_lines_is_refused_and_costs_no_memory(server: Server) -> None:
    before = server.memory_peak()
    attacks.floods_of_headers(server, 3)
    assert server.memory_peak() - before < 8 * MEBIBYTE


def test_chunks_of_a_byte_reach_the_application_together(server: Server) -> None:
    attacks.chunks_of_a_byte(server, 100_000)


def test_extensions_that_outweigh_their_chunks_are_refused(server: Server) -> None:
    attacks.chunks_with_extensions(server, 10_000)


def test_a_compressed_bomb_is_passed_on_as_it_came(server: Server) -> None:
    """Zeros, a thousand times as many as come: who unpacked them would have 256 MiB."""
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packed.compress(bytes(MEBIBYTE)) for _ in range(256)) + packed.flush()
    assert len(bomb) < MEBIBYTE
    before = server.memory_peak()
    with server.connect() as client:
        for coding in ("gzip", "deflate", "gzip, gzip"):
            headers = [("Content-Encoding", coding)]
            answer = client.ask("/echo", method="POST", body=bomb, headers=headers)
            assert (answer.status, answer.body) == (200, bomb)
    assert server.memory_peak() - before < 16 * MEBIBYTE


def test_clients_that_never_read_are_cut_off_and_their_handlers_end(server: Server) -> None:
    before = server.memory_peak()
    attacks.clients_that_never_read(server, 20)
    assert server.memory_peak() - before < 32 * MEBIBYTE
    attacks.settle(server)


def test_clients_that_reset_anywhere_leave_nothing_behind(server: Server) -> None:
    attacks.settle(server)
    before = server.open_files()
    attacks.resets_anywhere(server, 300)
    until = time.monotonic() + 30
    # The canary may have one or two more.
    while server.open_files() > before + 4:
        assert time.monotonic() < until, (before, server.open_files())
        time.sleep(0.05)


def test_silence_of_the_application_is_not_held_against_its_client(server: Server) -> None:
    """Three times as long as a client may leave bytes unread."""
    with server.connect() as client:
        client.send(request("/events?quiet=3"))
        assert client.read_response().body == b"data: one\n\ndata: two\n\n"
        client.send(request("/echo"))
        assert client.read_response().status == 200


def test_a_message_from_another_thread_is_an_error_and_nothing_worse(server: Server) -> None:
    with server.connect() as client:
        told = client.ask("/elsewhere").json()
        assert len(told) == 2
        assert "nothing" not in told[0]
        assert client.ask("/echo").status == 200


def test_a_request_that_meets_the_end_of_an_idle_connection_is_answered_or_never_ran(tmp_path: Path) -> None:
    with serving(Folder(tmp_path), "--timeout-keep-alive", "50ms") as server:
        attacks.ends_of_idle_connections(server, 60)


def test_an_upload_that_is_slow_and_quick_enough_is_served(
    serve_app: ServeApp, slow_client: MakeClient, tmp_path: Path
) -> None:
    """For longer than the rate is waited for, with long pauses between the pieces."""
    server = serve_app("corpus_app:app", cwd=APPS, env=Folder(tmp_path).env)
    # 14 pieces with the head.
    client = slow_client(server, "/echo", method="POST", body=b"x" * 70_000, piece=5100, pause=0.5)
    assert len(client.answer().body) == 70_000


def test_an_application_that_reads_slowly_costs_its_client_nothing(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    """Nobody waits for the client, however long its bytes are waited with."""
    server = serve_app("corpus_app:app", cwd=APPS, env=Folder(tmp_path).env, timeout_body=0.3)
    assert server.client.post("/sink?pause=0.4", content=b"x" * 300_000).json() == 300_000


def test_who_finds_no_descriptor_waits_and_is_served_when_there_is_one() -> None:
    """The server has room for a hundred clients of two hundred at most."""
    with Server("corpus_app:app", "--no-access-log", preexec_fn=_few_files) as server:
        with attacks.many(server, 200, attacks.Spent()) as clients:
            assert all(client.try_send(request("/echo")) for client in clients[:20])
            assert [client.read_response().status for client in clients[:20]] == [200] * 20
            for client in clients[:190]:
                client.close()
            for client in clients[190:]:
                client.send(request("/echo"))
                assert client.read_response().status == 200
        assert server.ask("/echo").status == 200


def _few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))


def test_no_deadline_is_taken_from_a_clock_that_may_jump() -> None:
    """The time of day is for dates, logs and operators; waits are told by a clock that only goes forward."""
    logs = {"access_layout.rs", "timestamp.rs", "access.rs", "farewell.rs", "http_date.rs", "sheets.rs"}
    operators = {"meters.rs", "census.rs", "traced.rs"}
    using = {
        path.name
        for path in SOURCES.glob("bridgehead-[enp]*/src/*.rs")
        if re.search(r"SystemTime::now|UNIX_EPOCH", path.read_text(encoding="utf-8"))
    }
    assert using <= logs | operators
