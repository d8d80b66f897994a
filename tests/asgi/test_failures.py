"""An application that fails: what the client sees, what the log says, who lives on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import UVICORN, Server, request
from harness.server import COMPLAINTS

KINDS = [
    "value",
    "os",
    "connection",
    "cancelled",
    "base",
    "stop",
    "stop-async",
    "generator-exit",
    "group",
    "recursion",
    "memory",
    "surrogate",
    "no-str",
]


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop, allow=["Traceback"]) as server:
        yield server


@pytest.mark.parametrize("suspended", ["no", "yes"])
@pytest.mark.parametrize("kind", KINDS)
def test_any_exception_before_the_start_is_a_500(server: Server, kind: str, suspended: str) -> None:
    response = server.ask(f"/fail?kind={kind}&suspended={suspended}")
    assert response.status == 500
    assert b"marked" not in response.body
    assert b"Traceback" not in response.body
    assert server.ask("/hello").status == 200


@pytest.mark.parametrize("suspended", ["no", "yes"])
@pytest.mark.parametrize("kind", ["system-exit", "keyboard"])
def test_an_exit_in_a_handler_is_a_500_and_the_worker_lives_on(loop: str, kind: str, suspended: str) -> None:
    with Server("asgi_app:app", "--loop", loop, allow=["Traceback"]) as server:
        for _ in range(3):
            assert server.ask(f"/fail?kind={kind}&suspended={suspended}").status == 500
        assert server.ask("/hello").status == 200


def test_a_500_keeps_the_connection_or_says_that_it_does_not(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/fail?kind=value")
        assert response.status == 500
        if response.closes:
            client.assert_closed()
        else:
            client.assert_open()


@pytest.mark.parametrize("suspended", ["no", "yes"])
def test_an_exception_leaves_one_record_with_the_applications_traceback(loop: str, suspended: str) -> None:
    with Server("asgi_app:app", "--loop", loop, allow=["Traceback"]) as server:
        server.ask(f"/fail?kind=value&suspended={suspended}")
        server.wait_line("ValueError: marked by the test")
        server.stop()
    log = server.stderr
    assert log.count("Traceback (most recent call last)") == 1
    assert log.count("ERROR") == 1
    assert "in raise_marked" in log
    assert "asgi_app.py" in log
    if not UVICORN:
        assert "bridgehead/" not in log, "our own frames say nothing to the application's author"


@pytest.mark.skipif(UVICORN, reason="uvicorn logs it as a cancelled task of its own")
@pytest.mark.parametrize("suspended", ["no", "yes"])
def test_a_cancellation_that_nobody_asked_for_leaves_one_record(loop: str, suspended: str) -> None:
    with Server("asgi_app:app", "--loop", loop, allow=["Traceback"]) as server:
        assert server.ask(f"/fail?kind=cancelled&suspended={suspended}").status == 500
        server.wait_line("CancelledError: by nobody")
        server.stop()
    log = server.stderr
    assert log.count("Exception in ASGI application") == 1
    assert log.count("Traceback (most recent call last)") == 1
    assert "in raise_marked" in log
    assert "bridgehead/" not in log


@pytest.mark.skipif(UVICORN, reason="uvicorn sends a start at once")
def test_a_start_leaves_with_the_first_body_so_that_an_exception_before_it_is_a_500(server: Server) -> None:
    """However many turns of the loop lie between."""
    with server.connect() as client:
        assert client.ask("/fail?kind=value&when=after-start&suspended=yes").status == 500
        client.assert_open()


def test_an_exception_after_the_first_body_aborts_the_connection(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/fail?kind=value&when=after-body&suspended=yes") + request("/hello"))
        answer = client.read_to_any_end()
    assert not answer.endswith(b"0\r\n\r\n")
    assert b"hello" not in answer
    assert b"marked" not in answer


def test_an_exception_after_the_end_is_logged_and_the_answer_stands(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/fail?kind=value&when=after-end&suspended=yes")
        assert (response.status, response.body) == (200, b"a part")
        server.wait_line("ValueError: marked by the test")
        client.assert_open()


@pytest.mark.parametrize("read", ["no", "yes"])
def test_an_application_that_sends_nothing_is_a_500(server: Server, read: str) -> None:
    with server.connect() as client:
        assert client.ask(f"/silent?read={read}", method="POST", body=b"x").status == 500
    assert server.ask("/hello").status == 200


def test_an_application_that_sends_nothing_is_logged(loop: str) -> None:
    with Server("asgi_app:app", "--loop", loop) as server:
        server.ask("/silent")
        server.wait_line("ERROR")


@pytest.mark.skipif(UVICORN, reason="uvicorn sends a start at once")
def test_an_application_that_only_starts_is_a_500(server: Server) -> None:
    assert server.ask("/only-start").status == 500
    server.wait_line("returned without completing its response")


@pytest.mark.skipif(UVICORN, reason="uvicorn says nothing")
def test_who_sends_for_an_application_that_has_returned_is_not_told_that_its_client_has_gone(
    server: Server,
) -> None:
    with server.connect() as client:
        assert client.ask("/leave-a-sender").status == 500
        server.wait_line("returned without starting its response")
        server.ring("answer-later")
        said = server.note("answered-later")
        assert said.startswith("ClientDisconnected: the application has returned, so its answer is over")


@pytest.mark.parametrize("path", ["/only-start", "/no-end"])
def test_an_application_that_never_ends_its_answer_to_head_is_logged(loop: str, path: str) -> None:
    with Server("asgi_app:app", "--loop", loop) as server, server.connect() as client:
        client.send(request(path, method="HEAD"))
        assert client.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        server.wait_line("returned without completing its response")


def test_failures_of_pipelined_requests_do_not_shift_the_answers(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/hello") + request("/fail?kind=value") + request("/hello"))
        assert client.read_response().status == 200
        failed = client.read_response()
        assert failed.status == 500
        if not failed.closes:
            assert client.read_response().body == b"hello"


def test_a_failing_client_of_a_failing_handler_is_no_trouble(server: Server) -> None:
    for _ in range(20):
        client = server.connect()
        client.send(request("/fail?kind=value&when=after-body&suspended=yes"))
        client.reset()
    assert server.ask("/hello").status == 200


def test_a_request_that_is_cancelled_by_the_application_is_told_of(server: Server) -> None:
    assert server.ask("/cancel-itself?name=one").status == 500
    server.wait_line("CancelledError: cancelled by itself, one")


def test_a_failure_that_the_applications_logging_fails_over_is_a_500_too(loop: str) -> None:
    with Server("asgi_app:app", "--loop", loop, allow=COMPLAINTS) as server:
        assert server.ask("/break-the-log").status == 500
        assert server.ask("/hello").status == 200
