"""Handlers that the server cancels: those that take too long, and with an option those left by their clients.

When that is the case is the network's affair, whose tests in Rust have it (`oversight.rs`); here is what a
handler sees of it.

Where requests have a short time, a slow machine may use it up for one that is quick: what is to be answered
is asked for until it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import ClosedError, Response, Server, request


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    options = ["--timeout-request", "500ms", "--log-level", "debug"]
    with Server("overseen_app:app", "--loop", loop, *options) as server:
        yield server


@pytest.fixture(scope="module")
def ending(loop: str) -> Iterator[Server]:
    options = ["--cancel-on-disconnect", "--log-level", "debug"]
    with Server("overseen_app:app", "--loop", loop, *options) as server:
        yield server


def answered(server: Server, target: str) -> Response:
    """What comes once it comes in time."""
    while (answer := server.ask(target)).status == 504:
        pass
    assert answer.status == 200
    return answer


def left(server: Server, name: str) -> object:
    """The note that a handler leaves."""
    while not (notes := answered(server, f"/notes/{name}?now").json()):
        pass
    return notes[0]


@pytest.mark.parametrize("waits", ["sleep", "receive", "future", "thread"])
def test_a_handler_that_takes_too_long_is_cancelled_and_its_client_answered(
    server: Server, waits: str
) -> None:
    with server.connect() as client:
        answer = client.ask(f"/wait/{waits}?name={waits}")
        assert (answer.status, answer.header("connection")) == (504, None)
        assert answer.body == b"Gateway Timeout: the application took too long"
        assert left(server, waits) == "CancelledError"
        assert client.ask("/hello").status in (200, 504)
    server.wait_line("Gateway Timeout: the application took too long")


def test_an_answer_that_takes_too_long_is_cut_off(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/wait/after-a-piece?name=cut"))
        with pytest.raises(ClosedError):
            client.read_response()
    assert left(server, "cut") == "CancelledError"


def test_a_handler_that_ignores_its_cancellation_finds_nobody_there(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/ignore?name=ignored").status == 504
        assert left(server, "ignored") == "ClientDisconnected"


def test_a_client_is_answered_while_python_is_blocked(server: Server, tmp_path: Path) -> None:
    until = tmp_path / "until"
    with server.connect() as client:
        assert client.ask(f"/block?until={until}").status == 504
        until.touch()


def test_who_answers_in_time_is_left_alone(server: Server) -> None:
    assert answered(server, "/work-on?name=worked").body == b"answered"
    # Another one's time is over later than this one's would have been.
    assert server.ask("/wait/sleep?name=other").status == 504
    answered(server, "/ring/worked")
    assert left(server, "worked") == "done"


@pytest.mark.parametrize("waits", ["sleep", "receive", "after-a-piece"])
def test_a_handler_ends_with_its_client_where_that_is_asked_for(ending: Server, waits: str) -> None:
    with ending.connect() as client:
        client.send(request(f"/wait/{waits}?name={waits}"))
        assert ending.note(f"{waits}-began") is True
    assert ending.note(waits) == "CancelledError"


POST = "POST /wait/sleep?name={} HTTP/1.1\r\nHost: test\r\n"
UNFINISHED = {
    "no-byte": POST + "Content-Length: 5\r\n\r\n",
    "a-part": POST + "Content-Length: 500\r\n\r\nhello",
    "a-chunk": POST + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "on-hold": POST + "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    "much": POST + "Content-Length: 1000000\r\n\r\n" + "x" * 100_000,
}


@pytest.mark.parametrize("sent", UNFINISHED)
def test_a_client_that_leaves_in_the_middle_of_its_body_is_missed_though_nobody_reads(
    ending: Server, sent: str
) -> None:
    name = f"{sent}-reset"
    with ending.connect() as client:
        client.send(UNFINISHED[sent].format(name).encode())
        assert ending.note(f"{name}-began") is True
        client.reset()
        assert ending.note(name) == "CancelledError"


@pytest.mark.parametrize("sent", [sent for sent in UNFINISHED if sent != "much"])
def test_a_body_that_its_client_will_not_end_ends_the_handler_too(ending: Server, sent: str) -> None:
    name = f"{sent}-closed"
    with ending.connect() as client:
        client.send(UNFINISHED[sent].format(name).encode())
        assert ending.note(f"{name}-began") is True
    assert ending.note(name) == "CancelledError"


def test_a_client_that_sent_all_of_its_body_may_close_its_half_before_it_is_read(loop: str) -> None:
    body = b"x" * 300_000
    with Server("overseen_app:app", "--loop", loop) as server, server.connect() as client:
        client.send(request("/read-later?name=later", method="POST", body=body))
        client.half_close()
        assert server.note("later-began") is True
        server.ring("later")
        assert client.read_response().body == b"300000"


def test_what_is_done_after_an_answer_does_not_end_with_the_client(ending: Server) -> None:
    with ending.connect() as client:
        assert client.ask("/work-on?name=kept").body == b"answered"
    # Another client that has left is noticed after it.
    with ending.connect() as client:
        client.send(request("/wait/sleep?name=other"))
        assert ending.note("other-began") is True
    assert ending.note("other") == "CancelledError"
    ending.ring("kept")
    assert ending.note("kept") == "done"


def test_a_handler_goes_on_without_its_client_by_default(loop: str) -> None:
    with Server("overseen_app:app", "--loop", loop) as server:
        with server.connect() as client:
            client.send(request("/wait/bell?name=left"))
            assert server.note("left-began") is True
        server.ring("left")
        assert server.note("left") == "rung"
