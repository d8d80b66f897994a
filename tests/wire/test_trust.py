"""What a client says of its headers changes none of them; what an application says breaks no answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from harness import UVICORN, Server, request

HOSTILE = [bytes([code]) for code in (*range(0x20), 0x7F) if code != 0x09]


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    options = ("--proxy-headers", "--forwarded-allow-ips", "10.0.0.1")
    with Server("wire_app:app", "--loop", loop, *options, allow=["Traceback"]) as server:
        yield server


def headers_of(answer: Any) -> dict[str, str]:
    return dict(answer.json()["headers"])


def test_no_header_is_taken_out_for_being_named_in_connection(server: Server) -> None:
    named = "close, X-Forwarded-For, Host, Authorization, Cookie"
    sent = {"connection": named, "x-forwarded-for": "1.2.3.4", "authorization": "Basic x", "cookie": "a=b"}
    with server.connect() as client:
        answer = client.ask("/scope", headers=list(sent.items()))
        assert headers_of(answer) == {"host": "test", **sent}
        assert answer.closes
        client.assert_closed()


def test_an_underscore_is_no_dash(server: Server) -> None:
    sent = {
        "content_length": "5",
        "transfer_encoding": "chunked",
        "x_forwarded_for": "6.6.6.6",
        "x_forwarded_proto": "https",
    }
    with server.connect() as client:
        for _ in range(2):
            answer = client.ask("/scope", headers=list(sent.items()))
            assert headers_of(answer) == {"host": "test", **sent}
            scope = answer.json()
            assert (scope["client"], scope["scheme"]) == (["127.0.0.1", client.port], "http")


@pytest.mark.skipif(UVICORN, reason="uvicorn joins a list of any length")
def test_a_list_of_ten_thousand_is_too_long_and_of_one_that_fits_a_hundred_are_walked(server: Server) -> None:
    with server.connect() as client:
        client.try_send(request("/scope", headers=[("X-Forwarded-For", ",".join(["10.0.0.1"] * 10_000))]))
        assert client.read_response().status == 431
    trusted = "127.0.0.1,10.0.0.0/8"
    with Server("wire_app:app", "--forwarded-allow-ips", trusted) as trusting, trusting.connect() as client:
        several = [
            ("X-Forwarded-For", ",".join(f"10.0.{each}.{at}" for at in range(250))) for each in range(8)
        ]
        assert client.ask("/scope", headers=several).json()["client"] == ["10.0.7.150", 0]


@pytest.mark.skipif(UVICORN, reason="uvicorn's parser alone decides")
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda byte: f"{byte[0]:02x}")
def test_no_byte_of_an_applications_header_ends_a_line(server: Server, hostile: bytes) -> None:
    with server.connect() as client:
        client.send(request("/say", method="POST", body=b"a" + hostile + b"X-Injected: 1"))
        answer = client.read_response()
        assert answer.status == 500
        assert answer.header("x-injected") is None
        assert answer.header("location") is None
        assert b"Traceback" not in answer.body
        assert client.ask("/scope").status == 200
