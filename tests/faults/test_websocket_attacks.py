"""The attacks of `websocket_attacks.py`, with few clients; `make faults` sends many, and counts the costs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import websocket_attacks
from corpus import PATHS, serving
from harness import Server
from harness.websocket import WebSocket

from bridgehead.testing import Canary, Folder

KIBIBYTE = 1024


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """New for each, so that it has nothing in stock; a canary loses nothing meanwhile."""
    ledger = Folder(tmp_path_factory.mktemp("ledger"))
    with serving(ledger) as server, Canary(server.url, PATHS, ledger=ledger) as canary:
        canary.wait_for(3)
        yield server
        canary.wait_for(3)
        canary.check().assert_kept()


def test_messages_that_are_a_thousand_times_what_was_sent_cost_no_memory_for_each(server: Server) -> None:
    before = server.memory_peak()
    websocket_attacks.inflated_messages(server, 40)
    # 640 MiB were inflated; a few are there at a time, as bytes and as what the application gets.
    assert server.memory_peak() - before < 160 * KIBIBYTE**2


def test_a_connection_that_compresses_costs_what_it_is_granted(server: Server) -> None:
    before = server.memory_peak()
    websocket_attacks.compressed_connections(server, 200)
    # Tables of 48 and 176 KiB, and 16 for the connection.
    assert server.memory_peak() - before < 200 * (48 + 176 + 16) * KIBIBYTE


def test_nothing_is_inflated_where_compression_is_off(tmp_path_factory: pytest.TempPathFactory) -> None:
    ledger = Folder(tmp_path_factory.mktemp("ledger"))
    with serving(ledger, "--ws-per-message-deflate", "false") as server, server.connect() as client:
        headers = [("Sec-WebSocket-Extensions", websocket_attacks.ALONE)]
        socket = WebSocket(client, websocket_attacks.LENGTHS, headers=headers)
        socket.send(websocket_attacks.packed(websocket_attacks.LARGEST))
        assert socket.read_frame().closing[0] == 1002
