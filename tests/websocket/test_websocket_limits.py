"""What keeps a WebSocket alive, what ends it, also while Python blocks; backpressure both ways."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import ClosedError, Response, Server, WebSocket, handshake
from harness.websocket import BINARY, CLOSE, PING, PONG, TEXT, frame


@pytest.fixture(scope="module")
def pinging(loop: str) -> Iterator[Server]:
    """Pings far more often than any test waits."""
    options = ("--ws-ping-interval", "50ms", "--ws-ping-timeout", "30s", "--no-access-log")
    with Server("websocket_app:app", "--loop", loop, *options) as server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("websocket_app:app", "--no-access-log") as server:
        yield server


def test_pings_go_on_while_python_blocks_and_a_living_client_stays(pinging: Server) -> None:
    with pinging.connect() as client:
        socket = WebSocket(client, "/block?seconds=1")
        socket.send_text("go")
        while (came := socket.read_frame()).payload != b"blocks":
            assert came.opcode == PING
        pings = 0
        while (came := socket.read_frame()).payload != b"is back":
            assert came.opcode == PING
            pings += 1
            socket.send(frame(PONG, came.payload))
        assert pings > 1


def test_pings_of_a_client_are_answered_while_python_blocks(pinging: Server) -> None:
    with pinging.connect() as client:
        socket = WebSocket(client, "/block?seconds=1")
        socket.send_text("go")
        while socket.read_frame().payload != b"blocks":
            pass
        socket.send(frame(PING, b"are you there"))
        while (came := socket.read_frame()).opcode == PING:
            socket.send(frame(PONG, came.payload))
        assert (came.opcode, came.payload) == (PONG, b"are you there")


def test_a_client_that_gives_no_sign_of_life_is_lost() -> None:
    with Server("websocket_app:app", "--ws-ping-interval", "50ms", "--ws-ping-timeout", "100ms") as server:
        with server.connect() as client:
            socket = WebSocket(client, "/echo")
            assert socket.read_frame().opcode == PING
            assert socket.read_frame().closing == (1011, "no answer to a ping")
            client.half_close_quietly()
            assert client.read_to_any_end() == b""
        assert server.note("end") == {"type": "websocket.disconnect", "code": 1006, "reason": ""}


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--ws-idle-timeout", "nothing was said for too long"),
        ("--ws-lifetime", "the connection has had its time"),
    ],
)
def test_a_websocket_may_have_a_time(option: str, reason: str) -> None:
    with Server("websocket_app:app", option, "200ms") as server:
        with server.connect() as client:
            socket = WebSocket(client, "/echo")
            assert socket.read_close() == (1001, reason)
        assert server.note("end") == {"type": "websocket.disconnect", "code": 1001, "reason": reason}


SLOW = b"Gateway Timeout: the application neither accepted nor refused the WebSocket in time"


@pytest.fixture(scope="module")
def impatient(loop: str) -> Iterator[Server]:
    options = ("--ws-accept-timeout", "500ms", "--log-level", "debug")
    with Server("websocket_app:app", "--loop", loop, *options) as server:
        yield server


def never(server: Server, way: str) -> Response | None:
    """What a client gets whose handshake is not answered; asked for until its handler began in time."""
    while True:
        response = None
        with server.connect() as client:
            client.send(handshake(f"/never?way={way}"))
            with contextlib.suppress(ClosedError):
                response = client.read_response()
            client.assert_closed()
        if server.notes(f"{way}-began"):
            return response


@pytest.mark.parametrize("way", ["sleep", "receive"])
def test_a_handshake_that_nobody_answers_is_answered_and_its_handler_cancelled(
    impatient: Server, way: str
) -> None:
    response = never(impatient, way)
    assert response is not None
    assert (response.status, response.body, response.closes) == (504, SLOW, True)
    assert impatient.note(way) == "CancelledError"
    assert impatient.wait_line("neither accepted nor refused")


def test_a_refusal_that_does_not_end_in_time_is_cut_off(impatient: Server) -> None:
    response = never(impatient, "half")
    assert response is None or response.status == 504
    assert impatient.note("half") == "CancelledError"


def test_a_handshake_is_answered_in_time_while_python_is_blocked(impatient: Server, tmp_path: Path) -> None:
    until = tmp_path / "until"
    with impatient.connect() as client:
        client.send(handshake(f"/never?way=block&until={until}"))
        assert client.read_response().status == 504
        until.touch()
    assert impatient.ask("/scope").status == 200


def test_what_is_accepted_in_time_lasts(impatient: Server) -> None:
    while True:
        with impatient.connect() as client:
            client.send(handshake("/echo"))
            if (response := client.read_response()).status == 504:
                continue  # The machine was too slow.
            socket = WebSocket.over(client, response)
            with impatient.connect() as other:
                # Its time is over later than that one's would be.
                other.send(handshake("/never?way=later"))
                assert other.read_response().status == 504
            assert socket.echo("still here") == "still here"
            return


def test_a_client_that_nobody_receives_from_is_paused_and_costs_bounded_memory(server: Server) -> None:
    with server.connect() as client:
        socket = WebSocket(client, "/held")
        one = frame(BINARY, bytes(60_000))
        before = server.memory_peak()
        count = 300
        sent = client.send_until_paused(one * count)
        assert sent < len(one) * count
        assert server.memory_peak() - before < 16 * 1024**2
        server.ring("receive")
        client.send((one * count)[sent:] + frame(TEXT, b"last"))
        assert socket.read_text() == str(count + 1)


def test_many_small_messages_that_nobody_receives_are_paused_too(server: Server) -> None:
    with (
        Server("websocket_app:app", "--ws-max-queue", "1", "--no-access-log") as server,
        server.connect() as client,
    ):
        socket = WebSocket(client, "/held")
        one = frame(TEXT, b"x" * 100)
        count = 50_000
        sent = client.send_until_paused(one * count)
        assert sent < len(one) * count
        server.ring("receive")
        client.send((one * count)[sent:] + frame(TEXT, b"last"))
        assert socket.read_text() == str(count + 1)


def test_a_client_that_does_not_read_parks_its_application_and_costs_bounded_memory() -> None:
    options = ("--timeout-write", "1s", "--no-access-log")
    with Server("websocket_app:app", *options) as server, server.connect(receive_buffer=4096) as client:
        before = server.memory_peak()
        socket = WebSocket(client, "/flood?size=16384")
        assert socket.read_frame().opcode == BINARY
        # Nothing is read until the server has given up.
        assert server.note("sent") > 0
        assert server.memory_peak() - before < 16 * 1024**2


def test_a_client_that_reads_gets_all_of_a_flood(server: Server) -> None:
    with server.connect() as client:
        socket = WebSocket(client, "/flood?size=1024")
        for _ in range(2000):
            assert len(socket.read_frame().payload) == 1024
        client.reset()
        assert server.note("sent") >= 2000


@pytest.mark.parametrize("size", [1024, 16 * 1024, 64 * 1024, 1024 * 1024])
def test_what_was_parked_goes_on_as_soon_as_its_client_reads_again(server: Server, size: int) -> None:
    """Without a word of the client's: its own frames would wake the connection as well."""
    with server.connect(receive_buffer=256 * 1024) as client, server.connect() as other:
        socket = WebSocket(client, f"/flood?size={size}")
        for _ in range(5):
            # Nothing is read until the application has sent all that there is room for.
            sent = -1
            while (now := other.ask("/flooded").json()) != sent:
                sent = now
            for _ in range(8 * 1024 * 1024 // size + 4):
                assert len(socket.read_frame().payload) == size
        client.reset()
        assert server.note("sent") >= 20


def test_a_client_that_does_not_answer_a_close_is_left(server: Server) -> None:
    """In its own time, and the application has long heard of its own close."""
    with server.connect() as client:
        socket = WebSocket(client, "/end?how=plain")
        assert socket.read_frame().opcode == CLOSE
        assert server.note("end")["code"] == 1000
