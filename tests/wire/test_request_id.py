"""`--request-id`: one name for a request, in the answer, the scope, the lines and the records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from harness import Server, request

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
MADE = re.compile(r"[0-9a-f]{32}")


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    options = ("--request-id", "--log-level", "debug", "--loop", loop)
    with Server("log_app:app", *options, allow=["Traceback"]) as server:
        yield server


@pytest.mark.parametrize("given", ["from-the-client", "a.b_c~d+e/f=:@1", "x" * 128])
def test_a_clients_id_is_taken_and_given_back(server: Server, given: str) -> None:
    with server.connect() as client:
        client.send(request("/state?taken", headers=[("X-Request-ID", given)]))
        answer = client.read_response()
        assert answer.all("x-request-id") == [given]
        assert answer.json() == {"request_id": given, "traceparent": None}
        line = server.wait_line(f"127.0.0.1:{client.port} - ", stream="stdout")
    assert line.endswith(f'"GET /state?taken HTTP/1.1" 200 OK request_id={given}\n')


@pytest.mark.parametrize("given", ["", "two words", 'quote"', "<b>", "a,b", "é", "x" * 129])
def test_an_id_that_is_not_harmless_is_replaced(server: Server, given: str) -> None:
    with server.connect() as client:
        client.send(request("/state", headers=[("X-Request-ID", given)]))
        answer = client.read_response()
    assert MADE.fullmatch(answer.all("x-request-id")[0])
    assert answer.json()["request_id"] == answer.header("x-request-id")


def test_requests_without_an_id_get_one_each(server: Server) -> None:
    with server.connect() as client:
        answers = [client.ask("/state") for _ in range(20)]
    names = {answer.header("x-request-id") for answer in answers}
    assert len(names) == 20
    assert all(name and MADE.fullmatch(name) for name in names)


def test_an_application_that_sets_the_header_has_the_last_word(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/own", headers=[("x-request-id", "the-clients")]))
        assert client.read_response().all("x-request-id") == ["the-applications"]
        assert "request_id=the-clients" in server.wait_line(f"127.0.0.1:{client.port} - ", stream="stdout")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (PARENT, PARENT),
        ("malformed", None),
        (PARENT.upper(), None),
        ("", None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01", None),
        (PARENT.replace("00-", "ff-", 1), None),
    ],
)
def test_a_well_formed_traceparent_is_in_the_state(server: Server, given: str, kept: str | None) -> None:
    with server.connect() as client:
        client.send(request("/state", headers=[("traceparent", given)]))
        assert client.read_response().json()["traceparent"] == kept


def test_an_exception_is_reported_with_the_requests_id(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/fail", headers=[("x-request-id", "it-failed")]))
        answer = client.read_response()
    assert (answer.status, answer.all("x-request-id")) == (500, ["it-failed"])
    line = server.wait_line("it-failed")
    assert line == "ERROR:    Exception in ASGI application (request it-failed)\n"


def test_a_traceparent_is_in_lines_and_records(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/fail?traced", headers=[("x-request-id", "traced"), ("traceparent", PARENT)]))
        assert client.read_response().status == 500
    line = server.wait_line("(request traced")
    assert line == f"ERROR:    Exception in ASGI application (request traced, traceparent {PARENT})\n"
    line = server.wait_line("/fail?traced", stream="stdout")
    assert line.endswith(f"request_id=traced traceparent={PARENT}\n")


def test_a_misbehaviour_is_reported_with_the_requests_id(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/lacking", headers=[("x-request-id", "it-lacked")]))
        assert client.read_response().status == 500
    line = server.wait_line("it-lacked")
    assert line.startswith("ERROR:    ASGI: the application returned without starting its response")
    assert line.endswith(" (request it-lacked)\n")


def test_a_refused_request_has_its_id(server: Server) -> None:
    with server.connect() as client:
        client.send(b"GET / HTTP/1.1\r\nX-Request-ID: no-host\r\n\r\n")
        answer = client.read_response()
    assert (answer.status, answer.all("x-request-id")) == (400, ["no-host"])
    assert server.wait_line("no-host").endswith(" needs a Host header (request no-host)\n")


def test_loggers_get_the_id_as_an_attribute(loop: str) -> None:
    options = ("--request-id", "--loop", loop)
    with Server("log_app:app", *options, env={"LOGGING": "intercepted"}) as server:
        with server.connect() as client:
            client.send(request("/fail", headers=[("x-request-id", "named")]))
            client.read_response()
            port = client.port
        line = server.wait_line("/fail", stream="stdout")
        assert (
            line == f'sink uvicorn.access | INFO | 127.0.0.1:{port} - "GET /fail HTTP/1.1" 500 |  | named\n'
        )
        failed = "sink uvicorn.error | ERROR | Exception in ASGI application (request named)"
        assert server.wait_line("named") == f"{failed} | RuntimeError('theirs') | named\n"


def test_a_formatter_that_shows_the_names_has_a_dash_where_there_are_none() -> None:
    options = ("--request-id", "--log-level", "debug")
    with Server("log_app:app", *options, env={"LOGGING": "named"}, allow=["Traceback"]) as server:
        with server.connect() as client:
            client.send(request("/fail", headers=[("x-request-id", "named")]))
            client.read_response()
        with server.connect() as client:
            client.send(b"unreadable\r\n\r\n")
            assert client.read_response().status == 400
        server.stop()
        assert "KeyError" not in server.stderr
        assert re.search(r"sink uvicorn.access .* 500 id=named trace=-\n", server.stdout)
        assert re.search(r"sink uvicorn.access .* 400 id=- trace=-\n", server.stdout)
        assert "Exception in ASGI application (request named) id=named trace=-\n" in server.stderr
        assert re.search(r"sink uvicorn.error Refused a request of .* id=- trace=-\n", server.stderr)
        assert "sink uvicorn.error Shutting down id=- trace=-\n" in server.stderr
        assert "sink uvicorn.error the application's own id=- trace=-\n" in server.stderr


def test_as_json_id_and_trace_are_members(loop: str) -> None:
    options = ("--request-id", "--log-format", "json", "--loop", loop)
    with Server("log_app:app", *options, allow=["Traceback"]) as server:
        with server.connect() as client:
            client.send(request("/fail", headers=[("x-request-id", "named"), ("traceparent", PARENT)]))
            client.read_response()
        line = json.loads(server.wait_line("/fail", stream="stdout"))
        assert (line["request_id"], line["traceparent"]) == ("named", PARENT)
        failed = json.loads(server.wait_line("Exception"))
        assert (failed["request_id"], failed["traceparent"]) == ("named", PARENT)


def test_without_the_option_nothing_is_named() -> None:
    with Server("log_app:app", "--access-log-format", "{target} {request_id} {traceparent}") as server:
        with server.connect() as client:
            client.send(request("/state", headers=[("x-request-id", "given"), ("traceparent", PARENT)]))
            answer = client.read_response()
        assert answer.all("x-request-id") == []
        assert answer.json() == {"request_id": None, "traceparent": None}
        assert server.wait_line("/state", stream="stdout") == "/state - -\n"
