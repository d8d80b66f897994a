"""Clients that close their own direction: they are answered, whoever listens for their leaving meanwhile.

A close of both directions looks the same until something is written; then it is told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from harness import Client, Server, request

names = map("name-{}".format, count())


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("leaving_app:app", "--loop", loop) as server:
        yield server


def half_closed(server: Server, target: str) -> Client:
    client = server.connect()
    client.send(request(target))
    client.half_close()
    return client


@pytest.mark.runtimes
def test_an_application_that_was_told_of_a_leaving_still_answers_a_half_closed_client(server: Server) -> None:
    with half_closed(server, "/answer-late") as client:
        assert client.read_response().body == b"late"
        client.assert_closed()
    with half_closed(server, "/answer-beside") as client:
        assert client.read_response().body == b"before, after"
        client.assert_closed()


@pytest.mark.runtimes
def test_an_answer_of_any_size_reaches_a_half_closed_client(server: Server) -> None:
    with half_closed(server, "/answer-late?pieces=100000") as client:
        assert client.read_response().body == b"".join(b"%06d" % number for number in range(100_000))
        client.assert_closed()


def test_pipelined_requests_of_a_half_closed_client_are_all_answered_to_who_listens(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/answer-late") + request("/answer-beside") + request("/hello"))
        client.half_close()
        assert [client.read_response().body for _ in range(3)] == [b"late", b"before, after", b"hello"]
        client.assert_closed()


def test_requests_behind_an_answer_whose_last_word_is_due_are_answered(server: Server) -> None:
    name = next(names)
    with server.connect() as client:
        client.send(request(f"/declare-and-end?name={name}"))
        assert client.read_response().body == b"declared"
        client.send(request("/hello") + request("/answer-late"))
        client.half_close()
        server.ring(name)
        assert server.note(name) == "ended"
        assert [client.read_response().body for _ in range(2)] == [b"hello", b"late"]
        client.assert_closed()


def test_whoever_listens_behind_a_declared_body_hears_of_an_end_behind_requests(server: Server) -> None:
    name = next(names)
    with server.connect() as client:
        client.send(request(f"/wait-when-left?name={name}&declared=yes"))
        assert client.read_response().body == b"declared"
        client.send(request("/hello"))
        client.half_close()
        assert server.note(name) == "told"
        server.ring(name)
        assert server.note(name) == "answered"
        assert client.read_response().body == b"hello"
        client.assert_closed()


@pytest.mark.runtimes
@pytest.mark.parametrize("leave", [Client.close, Client.half_close, Client.reset])
def test_the_last_word_on_a_body_that_the_client_has_in_full_is_taken(
    server: Server, leave: Callable[[Client], None]
) -> None:
    """A framework's empty last piece is no reason to leave out what it does afterwards."""
    name = next(names)
    with server.connect() as client:
        client.send(request(f"/wait-when-left?name={name}&declared=yes"))
        assert client.read_response().body == b"declared"
        leave(client)
        assert server.note(name) == "told"
        server.ring(name)
        assert server.note(name) == "answered"


@pytest.mark.runtimes
@pytest.mark.parametrize("push", ["", "&push=yes"])
@pytest.mark.parametrize("leave", [Client.close, Client.reset])
def test_a_send_to_a_client_that_has_left_altogether_is_refused(
    server: Server, leave: Callable[[Client], None], push: str
) -> None:
    name = next(names)
    client = server.connect()
    client.send(request(f"/send-until-refused?name={name}{push}"))
    client.read_until(b"begun")
    leave(client)
    assert server.note(name) == "told"
    assert server.note(name) == "ClientDisconnected"


def test_a_half_closed_client_that_leaves_altogether_is_noticed_by_the_next_sends(server: Server) -> None:
    name = next(names)
    with half_closed(server, f"/send-until-refused?name={name}") as client:
        assert server.note(name) == "told"
        client.read_until(b"a piece")
    assert server.note(name) == "ClientDisconnected"


def test_a_unix_client_that_closes_is_told_apart_from_one_that_half_closes(loop: str, tmp_path: Path) -> None:
    path, name = str(tmp_path / "socket"), next(names)
    with Server(
        "leaving_app:app", "--loop", loop, "--bind", f"unix:{path}", "--bind", "127.0.0.1:0"
    ) as server:
        with Client(path) as client:
            client.send(request("/answer-late"))
            client.half_close()
            assert client.read_response().body == b"late"
        with Client(path) as client:
            client.send(request(f"/wait-when-left?name={name}"))
        assert server.note(name) == "told"
        server.ring(name)
        assert server.note(name) == "ClientDisconnected"


def test_an_application_that_stops_when_it_is_told_is_not_at_fault(loop: str) -> None:
    with Server("leaving_app:app", "--loop", loop) as server:
        with half_closed(server, "/return-when-left") as client:
            client.assert_closed()
        server.wait_line('"GET /return-when-left HTTP/1.1" 499', stream="stdout")
        with half_closed(server, "/return-when-left?begun=yes") as client:
            assert b"begun" in client.read_to_any_end()
        server.stop()
        assert "returned without" not in server.stderr


def test_an_application_that_fails_of_itself_owes_a_half_closed_client_a_500(loop: str) -> None:
    with Server("leaving_app:app", "--loop", loop, allow=["Traceback"]) as server:
        with half_closed(server, "/fail-when-left") as client:
            assert client.read_response().status == 500
        server.wait_line("failed of itself")
