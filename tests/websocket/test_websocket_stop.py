"""The end of a server with WebSockets open: each client and application is told, and the server ends."""

from __future__ import annotations

from signal import SIGTERM

import pytest
from harness import Server, WebSocket, handshake
from harness.websocket import close_frame


@pytest.mark.parametrize("target", ["/wait", "/echo"])
def test_each_is_closed_with_1012_and_its_application_runs_to_its_end(loop: str, target: str) -> None:
    count = 50
    with Server("websocket_app:app", "--loop", loop, "--no-access-log") as server:
        sockets = [WebSocket(server.connect(), target) for _ in range(count)]
        server.signal(SIGTERM)
        closings = []
        for socket in sockets:
            closings.append(socket.read_frame().closing)
            socket.client.try_send(close_frame(1012))
        assert closings == [(1012, "the server stops")] * count
        server.assert_ended_well()


def test_who_does_not_answer_does_not_hold_the_end() -> None:
    with Server("websocket_app:app", "--timeout-graceful-shutdown", "2s") as server:
        socket = WebSocket(server.connect(), "/wait")
        server.signal(SIGTERM)
        assert socket.read_frame().closing[0] == 1012
        server.assert_ended_well()


def test_one_that_is_accepted_while_the_server_stops_is_told_at_once() -> None:
    with Server("websocket_app:app", "--no-access-log") as server:
        client = server.connect()
        client.send(handshake("/late"))
        assert server.note("here") is True
        server.signal(SIGTERM)
        server.wait_line("Shutting down")
        client.reset()
        server.assert_ended_well()
