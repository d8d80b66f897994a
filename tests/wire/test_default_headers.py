"""`Date`, `Server` and the headers of the operator."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest
from harness import UVICORN, Server, request


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("wire_app:app", allow=["Traceback"]) as server:
        yield server


def test_date_is_there_once_and_is_now(server: Server) -> None:
    date = server.ask("/hello").header("date")
    assert date is not None
    assert date.endswith(" GMT")
    assert abs(parsedate_to_datetime(date) - datetime.now(UTC)) < timedelta(minutes=5)


def test_server_is_there_once_and_names_us(server: Server) -> None:
    assert server.ask("/hello").header("server") == ("uvicorn" if UVICORN else "bridgehead")


@pytest.mark.parametrize("name", ["date", "Date", "DATE"])
def test_the_applications_own_date_is_not_doubled(server: Server, name: str) -> None:
    response = server.ask(f"/respond?headers={name}:Thu,%2001%20Jan%201970%2000:00:00%20GMT")
    assert response.header("date") == "Thu, 01 Jan 1970 00:00:00 GMT"


@pytest.mark.parametrize("name", ["server", "Server", "SERVER"])
def test_the_applications_own_server_is_not_doubled(server: Server, name: str) -> None:
    assert server.ask(f"/respond?headers={name}:its-own").header("server") == "its-own"


def test_an_error_answer_has_the_default_headers_too(server: Server) -> None:
    response = server.ask("/fail?when=before")
    assert response.status == 500
    assert response.header("date") is not None
    assert response.header("server") is not None


@pytest.mark.skipif(UVICORN, reason="uvicorn accepts a request without Host")
def test_a_refusal_says_close_and_has_a_date(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/hello", host=None))
        response = client.read_response()
    assert response.status == 400
    assert response.closes
    assert response.header("date") is not None


def test_no_server_header_takes_it_out() -> None:
    with Server("wire_app:app", "--no-server-header") as server:
        response = server.ask("/hello")
        assert response.header("server") is None
        assert response.header("date") is not None
        assert server.ask("/respond?headers=server:its-own").header("server") == "its-own"


def test_no_date_header_takes_it_out() -> None:
    with Server("wire_app:app", "--no-date-header") as server:
        response = server.ask("/hello")
        assert response.header("date") is None
        assert response.header("server") is not None


def test_the_operators_headers_are_on_every_answer() -> None:
    options = ["--header", "X-One:1", "--header", "X-Two: two words", "--header", "x-one:again"]
    with Server("wire_app:app", *options, allow=["Traceback"]) as server:
        for target in ("/hello", "/chunks?count=2&size=2", "/fail?when=before"):
            response = server.ask(target)
            assert [value.strip() for value in response.all("x-one")] == ["1", "again"]
            assert response.all("x-two") == ["two words"]
        for refused in (b"a b: c", b"a: \x01", b"no colon"):
            with server.connect() as client:
                client.send(b"GET /hello HTTP/1.1\r\nHost: test\r\n" + refused + b"\r\n\r\n")
                response = client.read_response()
            assert (response.status, response.all("x-two")) == (400, ["two words"])


def test_the_operators_server_header_takes_the_place_of_ours() -> None:
    with Server("wire_app:app", "--header", "Server:theirs") as server:
        assert server.ask("/hello").header("server") == "theirs"
