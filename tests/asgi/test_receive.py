"""What `receive()` gives: the body, then what became of the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import UVICORN, ClosedError, Server, request


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop) as server:
        yield server


def test_no_body_is_one_empty_message(server: Server) -> None:
    assert server.ask("/received").json() == [
        {"type": "http.request", "body": "bytes:", "more_body": False},
    ]


@pytest.mark.parametrize("method", ["POST", "PUT", "GET", "DELETE"])
def test_a_small_body_is_one_message(server: Server, method: str) -> None:
    assert server.ask("/received", method=method, body=b"small").json() == [
        {"type": "http.request", "body": "bytes:small", "more_body": False},
    ]


def test_a_body_of_length_zero_is_one_empty_message(server: Server) -> None:
    assert server.ask("/received", method="POST").json() == [
        {"type": "http.request", "body": "bytes:", "more_body": False},
    ]


def test_the_messages_of_a_large_body_make_the_body(server: Server) -> None:
    body = bytes(range(128)) * 8192
    messages = server.ask("/received", method="POST", body=body).json()
    assert "".join(message["body"].removeprefix("bytes:") for message in messages).encode() == body
    assert [message["more_body"] for message in messages] == [True] * (len(messages) - 1) + [False]


def test_chunks_are_taken_off_a_chunked_body(server: Server) -> None:
    with server.connect() as client:
        client.send(
            request("/received", method="PATCH", headers=[]).replace(
                b"Content-Length: 0", b"Transfer-Encoding: chunked"
            )
        )
        client.send(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
        messages = client.read_response().json()
    assert "".join(message["body"].removeprefix("bytes:") for message in messages) == "abcde"
    assert messages[-1]["more_body"] is False


def test_a_body_that_comes_in_pieces_comes_in_messages(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/received", headers=[("Content-Length", "6")]) + b"ab")
        server.ask("/hello")
        client.send(b"cd")
        server.ask("/hello")
        client.send(b"ef")
        messages = client.read_response().json()
    assert "".join(message["body"].removeprefix("bytes:") for message in messages) == "abcdef"


@pytest.mark.parametrize("read", ["yes", "no"])
def test_after_the_answer_receive_gives_disconnect_again_and_again(server: Server, read: str) -> None:
    name = f"after-{read}"
    with server.connect() as client:
        assert client.ask(f"/after?name={name}&read={read}").body == b"answered"
        assert server.note(name) == [{"type": "http.disconnect"}] * 3
        client.assert_open()


def test_after_the_answer_receive_gives_disconnect_even_if_a_body_is_left(server: Server) -> None:
    with server.connect() as client:
        client.ask("/after?name=after-left&read=no", method="POST", body=b"left")
        assert server.note("after-left")[-1] == {"type": "http.disconnect"}


@pytest.mark.parametrize("leave", ["reset", "close"])
@pytest.mark.parametrize("start", ["no", "yes"])
def test_a_client_that_leaves_is_told_to_a_waiting_receive(server: Server, start: str, leave: str) -> None:
    name = f"gone-{start}-{leave}"
    client = server.connect()
    client.send(request(f"/await-disconnect?name={name}&start={start}", method="POST", body=b"all of it"))
    assert server.note(f"{name}-waits") is True
    getattr(client, leave)()
    assert [message["type"] for message in server.note(name)] == ["http.disconnect"] * 2
    assert server.note(f"{name}-finally") is True


@pytest.mark.parametrize("leave", ["reset", "close"])
def test_a_client_that_leaves_is_told_to_a_task_that_receives_while_its_handler_waits_for_something_else(
    server: Server, leave: str
) -> None:
    name = f"beside-{leave}"
    client = server.connect()
    client.send(request(f"/receive-beside?name={name}"))
    assert server.note(f"{name}-waits") is True
    getattr(client, leave)()
    assert server.note(f"{name}-told") == "http.disconnect"
    # Nothing has come to the handler meanwhile, and the next `receive()` is one that can be cancelled.
    server.ask(f"/ring/{name}")
    assert server.note(name) == {"handler": "rang", "second": "http.disconnect"}


def test_a_receive_that_is_cancelled_ends_as_cancelled(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/cancel-beside?name=cancel-beside"))
        assert server.note("cancel-beside-waits") is True
        server.ask("/ring/cancel-beside")
        assert server.note("cancel-beside") == ["cancelled"]


def test_a_client_that_leaves_between_two_pieces_of_its_body_is_told(server: Server) -> None:
    client = server.connect()
    client.send(request("/read-cancelled?name=half", headers=[("Content-Length", "6")]) + b"abc")
    assert server.note("half") is True
    client.reset()
    assert server.ask("/hello").status == 200


@pytest.mark.parametrize("leave", ["reset", "close"])
def test_sending_to_a_client_that_left_raises_client_disconnected(server: Server, leave: str) -> None:
    name = f"send-{leave}"
    client = server.connect()
    client.send(request(f"/send-until-gone?name={name}"))
    server.note(f"{name}-began")
    client.read_until(b"x")
    getattr(client, leave)()
    report = server.note(name)
    assert "builtins.OSError" in report["kinds"]
    if not UVICORN:
        assert report["kind"] == "bridgehead.ClientDisconnected"
        assert report["again"] == "ClientDisconnected"
    assert report["receive"] == "http.disconnect"


@pytest.mark.skipif(UVICORN, reason="uvicorn raises nothing, or RuntimeError")
@pytest.mark.parametrize(
    ("message", "declared"),
    [
        ("start", ""),
        ("piece", ""),
        ("last", ""),
        ("piece", "7"),
        ("last", "7"),
        ("last", "10"),
        ("last", "99"),
    ],
)
def test_the_same_message_to_a_client_that_left_raises_the_same_again(
    server: Server, message: str, declared: str
) -> None:
    name = f"retry-{message}-{declared}"
    client = server.connect()
    client.send(request(f"/retry-when-gone?name={name}&message={message}&declared={declared}"))
    server.note(f"{name}-began")
    client.reset()
    assert server.note(name) == ["ClientDisconnected"] * 3
    # Nor is anybody told of bytes too many, or too few.
    assert "content-length" not in server.stderr


def test_client_disconnected_is_no_error_in_the_log(loop: str) -> None:
    with Server("asgi_app:app", "--loop", loop) as server:
        for number in range(5):
            client = server.connect()
            client.send(request(f"/send-until-gone?name=quiet-{number}"))
            client.read_until(b"x")
            client.reset()
            server.note(f"quiet-{number}")
        # `stop` finds no traceback; nor is there any other word about it.
        server.stop()
        assert "ERROR" not in server.stderr
        assert "Disconnected" not in server.stderr


def test_a_handler_that_never_receives_still_runs_to_its_end(server: Server) -> None:
    client = server.connect()
    client.send(request("/background"))
    assert client.read_response().body == b"answered"
    client.reset()
    assert server.note("background") == "worked"


def test_a_cancelled_receive_loses_no_byte_of_the_body(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/read-cancelled?name=cancelled", headers=[("Content-Length", "400")]))
        assert server.note("cancelled") is True
        body = b""
        for number in range(100):
            piece = b"%04d" % number
            body += piece
            client.send(piece)
            # Exchanges elsewhere: time for the handler to cancel a `receive()` that has nothing yet.
            server.ask("/hello")
        answer = client.read_response().json()
    assert answer["body"].encode() == body
    assert answer["cancelled"] > 0


def test_receive_and_send_work_inside_tasks(server: Server) -> None:
    assert server.ask("/tasks", method="POST", body=b"-body-").body in (b"ab-body-slept", b"ba-body-slept")


def test_two_receives_at_once_give_the_body_once(server: Server) -> None:
    assert server.ask("/two-receives", method="POST", body=b"once").json().count("once") == 1


def test_an_answer_before_the_body_has_come_is_an_answer(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/hello", headers=[("Content-Length", "1000000")]))
        response = client.read_response()
        assert response.body == b"hello"
        assert response.closes or UVICORN
        client.half_close()
        try:
            assert client.read_to_end() == b""
        except ClosedError as closed:
            raise AssertionError(f"reset after {closed.data!r}") from closed


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_an_endless_answer_ends_when_its_client_leaves(server: Server, method: str) -> None:
    client = server.connect()
    client.send(request(f"/endless-until-gone?name=endless-{method}", method=method))
    client.read_until(b"\r\n\r\n")
    client.close()
    assert server.note(f"endless-{method}") == "ClientDisconnected"
