"""ASGI's rules of a WebSocket, seen by its application and by its client."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from harness import ClosedError, Server, WebSocket, handshake
from harness.websocket import PING, TEXT, close_frame, frame

CLOSED = "ClientDisconnected: the WebSocket is closed: nothing more comes, and nothing is sent"
GONE = "ClientDisconnected: the client has gone, and this message with it"


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("websocket_app:app", "--loop", loop, "--no-access-log", allow=["Traceback"]) as server:
        yield server


NUMBERS = itertools.count()


@pytest.fixture
def note() -> str:
    """What this test's application is called."""
    return f"end-{next(NUMBERS)}"


def opened(server: Server, target: str) -> WebSocket:
    return WebSocket(server.connect(), target)


def test_messages_come_back_as_they_went(server: Server, note: str) -> None:
    socket = opened(server, f"/echo?note={note}")
    for words in ("", "hello", "héllo 😀", "x" * 70_000):
        assert socket.echo(words) == words
    for payload in (b"", b"\x00\xff", bytes(range(256)) * 1000):
        socket.send(frame(2, payload))
        answer = socket.read_frame()
        assert (answer.opcode, answer.payload) == (2, payload)
    assert socket.close(3000, "done") == (3000, "done")
    assert server.note(note) == {"type": "websocket.disconnect", "code": 3000, "reason": "done"}


def test_messages_that_are_there_are_received_and_answered_without_waiting(server: Server) -> None:
    socket = opened(server, "/ready")
    socket.send(b"".join(frame(TEXT, b"m%d" % number) for number in range(21)) + frame(PING))
    assert socket.read_frame().opcode == 10
    server.ring("all-there")
    assert [socket.read_text() for _ in range(20)] == ["x"] * 20
    assert socket.read_text() == "m0 0"


def test_what_many_tasks_send_at_once_leaves_in_the_order_of_their_sends(server: Server) -> None:
    socket = opened(server, "/sends-at-once")
    assert [socket.read_text() for _ in range(500)] == [str(number) for number in range(500)]


@pytest.mark.parametrize(
    ("query", "closing"),
    [
        ("how=return", (1000, "")),
        ("how=raise", (1011, "")),
        ("how=exit", (1011, "")),
        ("how=plain", (1000, "")),
        ("how=code&code=3001&reason=bye", (3001, "bye")),
    ],
)
def test_a_websocket_ends_as_its_application_does(
    server: Server, note: str, query: str, closing: tuple[int, str]
) -> None:
    assert opened(server, f"/end?{query}&note={note}").read_close() == closing
    if "code" in query or "plain" in query:
        told = {"type": "websocket.disconnect", "code": closing[0], "reason": closing[1]}
        assert server.note(note) == told
        assert server.note("again") == CLOSED
        assert server.note("late") == [CLOSED, CLOSED]


@pytest.mark.parametrize(
    ("how", "status"), [("return", 403), ("raise", 500), ("plain", 403), ("code&code=3001", 403)]
)
def test_before_its_acceptance_an_end_is_an_answer(server: Server, note: str, how: str, status: int) -> None:
    with server.connect() as client:
        client.send(handshake(f"/end?how={how}&when=before&note={note}"))
        response = client.read_response()
        assert response.status == status
        assert response.closes
        client.assert_closed()
    if how in ("plain", "code&code=3001"):
        assert server.note(note) == {"type": "websocket.disconnect", "code": 1006, "reason": ""}
        assert server.note("again") == CLOSED
        assert server.note("late") == [CLOSED, CLOSED]


def test_a_return_without_a_word_and_an_exception_are_told_to_the_operator(server: Server) -> None:
    for how in ("return", "raise"):
        with server.connect() as client:
            client.send(handshake(f"/end?how={how}&when=before"))
            client.read_response()
    server.wait_line("the application returned without answering the handshake of its WebSocket")
    server.wait_line("RuntimeError: meant to be seen")


def test_an_application_may_refuse_in_its_own_words_piece_by_piece(server: Server) -> None:
    with server.connect() as client:
        client.send(handshake("/deny"))
        _, status, _, headers, _ = client.read_head()
        names = {name.lower(): value for name, value in headers}
        assert (status, names["x-why"], names["connection"]) == (418, "tea", "close")
        assert "upgrade" not in names
        assert client.read_chunk() == b"I am "
        server.ring("pour")
        assert b"".join(client.read_chunks()) == b"a teapot"
        client.assert_closed()
    assert server.note("misuse").startswith("MisuseError: `websocket.accept` came out of place")
    assert server.note("late") == ["ClientDisconnected", "ClientDisconnected", "MisuseError"]


def test_a_refusal_that_breaks_off_does_not_look_complete(server: Server) -> None:
    with server.connect() as client:
        client.send(handshake("/deny-half"))
        with pytest.raises(ClosedError):
            client.read_response()
    server.wait_line("the application returned without completing its response")


def test_a_client_that_leaves_before_its_acceptance_is_told_of_and_a_late_acceptance_is_no_error(
    server: Server,
) -> None:
    client = server.connect()
    client.send(handshake("/late"))
    assert server.note("here") is True
    client.reset()
    assert server.note("gone") == {"type": "websocket.disconnect", "code": 1006, "reason": ""}
    assert server.note("late") == GONE


def test_many_that_leave_before_their_acceptance_leave_no_words(server: Server) -> None:
    for _ in range(20):
        client = server.connect()
        client.send(handshake("/late"))
        client.reset()
    for _ in range(20):
        assert server.note("here") is True
        assert server.note("gone")["code"] == 1006
        assert server.note("late") == GONE
    assert "late" not in server.stderr


def test_of_two_that_receive_one_hears_of_the_end(server: Server) -> None:
    socket = opened(server, "/two")
    for _ in range(4):
        socket.send_text("x")
    assert {socket.read_text() for _ in range(4)} <= {"1", "2", "3", "4"}
    socket.close()
    assert server.note("two") == ["ClientDisconnected", "websocket.disconnect"]


def test_both_sides_may_close_at_once(server: Server) -> None:
    """Whoever's close comes first: the application is told once, and nothing is an error."""
    for _ in range(50):
        socket = opened(server, "/close-race")
        socket.send(frame(TEXT, b"x") + close_frame(3002))
        assert socket.read_frame().closing[0] in (3001, 3002)
        assert socket.client.read_to_any_end() == b""
        kind, code = server.note("race")
        assert (kind, code in (3001, 3002)) == ("websocket.disconnect", True)
    assert "close-race" not in server.stderr


def test_a_message_leaves_though_its_application_does_nothing_more(server: Server) -> None:
    assert opened(server, "/push").read_text() == "first"
    server.ring("pushed")


def test_a_thousand_messages_sent_in_one_go_come_in_their_order(server: Server) -> None:
    socket = opened(server, "/count?of=1000")
    assert [socket.read_text() for _ in range(1000)] == [str(number) for number in range(1000)]
    assert socket.read_close() == (1000, "")
