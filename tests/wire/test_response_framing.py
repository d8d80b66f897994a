"""How an answer is delimited, whatever the application says about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import UVICORN, ClosedError, Server, request


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("wire_app:app", "--loop", loop, allow=["Traceback"]) as server:
        yield server


def test_a_declared_length_is_kept(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/declared?length=10&sends=10&parts=3")
        assert (response.framing, response.body) == ("length", b"0123456789")
        client.assert_open()


def test_a_body_without_a_length_is_chunked(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/chunks?count=3&size=4")
        assert (response.framing, response.body) == ("chunked", b"c" * 12)
        client.assert_open()


def test_an_empty_body_is_complete_and_keeps_the_connection(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/chunks?count=0&size=0").body == b""
        assert client.ask("/chunks?count=3&size=0").body == b""
        client.assert_open()


@pytest.mark.parametrize("parts", [1, 2, 3, 10])
@pytest.mark.parametrize("length", [0, 1, 5, 9])
def test_more_than_the_declared_length_is_cut_and_the_connection_closed(
    server: Server, length: int, parts: int
) -> None:
    with server.connect() as client:
        target = f"/declared?length={length}&sends=10&parts={parts}"
        client.send(request(target) + request("/hello"))
        response = client.read_response()
        assert response.header("content-length") == str(length)
        assert response.body == b"0123456789"[:length]
        client.assert_closed()
    assert server.ask("/hello").status == 200


def test_a_body_that_is_cut_is_logged(server: Server) -> None:
    server.ask("/declared?length=5&sends=10")
    server.wait_line("ontent-length")


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("sends", [0, 1, 5, 9])
def test_less_than_the_declared_length_closes_the_connection(server: Server, sends: int, parts: int) -> None:
    with server.connect() as client:
        client.send(request(f"/declared?length=10&sends={sends}&parts={parts}") + request("/hello"))
        with pytest.raises(ClosedError) as closed:
            client.read_response()
    # A server that has not written anything yet may still say that it failed.
    assert closed.value.data in (b"0123456789"[:sends], b"")
    assert server.ask("/hello").status == 200


@pytest.mark.skipif(UVICORN, reason="uvicorn says it in other words")
def test_a_body_that_is_broken_off_is_logged(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/declared?length=10&sends=2"))
        with pytest.raises(ClosedError):
            client.read_response()
    says = "the application sent 8 bytes fewer than its content-length declares: the response was broken off"
    server.wait_line(says)


@pytest.mark.parametrize(
    "target",
    ["/hello", "/chunks?count=3&size=4", "/declared?length=10&sends=10", "/declared?length=10&sends=0"],
)
def test_an_answer_to_head_has_no_body(server: Server, target: str) -> None:
    with server.connect() as client:
        client.send(request(target, method="HEAD") + request("/hello"))
        assert client.read_response(method="HEAD").status == 200
        assert client.read_response().body == b"hello"


def test_an_answer_to_head_keeps_the_declared_length(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/hello", method="HEAD").header("content-length") == "5"
        assert client.ask("/declared?length=10&sends=0", method="HEAD").header("content-length") == "10"


@pytest.mark.parametrize("status", [204, 304])
def test_204_and_304_have_no_body_even_if_the_application_sends_one(server: Server, status: int) -> None:
    with server.connect() as client:
        client.send(request(f"/status?status={status}") + request("/hello"))
        response = client.read_response()
        assert response.status == status
        assert response.header("transfer-encoding") is None
        assert response.header("x-here") == "yes"
        if status == 204:
            assert response.header("content-length") is None
        assert client.read_response().body == b"hello"


@pytest.mark.parametrize("sent", ["parts=1", "parts=2", "body=10", "parts=2&body=10"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_304_keeps_the_length_of_what_the_client_has_however_it_is_sent(
    server: Server, method: str, sent: str
) -> None:
    with server.connect() as client:
        for _ in range(2):
            answer = client.ask(f"/not-modified?{sent}", method=method)
            assert (answer.status, answer.header("content-length"), answer.body) == (304, "10", b"")
        assert client.ask("/hello").body == b"hello"


@pytest.mark.parametrize("status", [200, 201, 206, 299, 400, 404, 418, 451, 499, 500, 503, 599, 999])
def test_any_final_status_is_sent(server: Server, status: int) -> None:
    with server.connect() as client:
        response = client.ask(f"/status?status={status}")
        assert (response.status, response.body) == (status, b"a body where none belongs")
        client.assert_open()


def test_205_may_carry_a_body_or_not_but_keeps_its_framing(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/status?status=205").status == 205
        client.assert_open()


@pytest.mark.parametrize(
    "headers",
    [
        "transfer-encoding:chunked",
        "transfer-encoding:gzip",
        "Transfer-Encoding:identity",
        "transfer-encoding:chunked|content-length:9",
    ],
)
def test_the_transfer_encoding_of_the_application_is_ignored(server: Server, headers: str) -> None:
    with server.connect() as client:
        response = client.ask(f"/respond?headers={headers}")
        assert response.body == b"responded"
        assert len(response.all("transfer-encoding")) <= 1
        client.assert_open()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("upgrade", "h2c"),
        ("te", "trailers"),
        ("Keep-Alive", "timeout=5"),
    ],
)
def test_a_hop_by_hop_header_of_the_application_is_ignored(server: Server, name: str, value: str) -> None:
    with server.connect() as client:
        response = client.ask(f"/respond?headers={name}:{value}")
        assert response.body == b"responded"
        assert response.all(name) == []
        client.assert_open()


@pytest.mark.parametrize("value", ["keep-alive", "upgrade", "x-hop"])
def test_a_connection_header_other_than_close_is_ignored(server: Server, value: str) -> None:
    with server.connect() as client:
        response = client.ask(f"/respond?headers=connection:{value}")
        assert response.header("connection") in (None, "keep-alive")
        client.assert_open()


@pytest.mark.skipif(UVICORN, reason="uvicorn passes it on")
def test_a_header_that_the_applications_connection_names_is_dropped_with_it(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/respond?headers=x-hop:1|connection:X-Hop,x-later|x-later:2|x-end:3")
        assert (response.all("x-hop"), response.all("x-later"), response.header("x-end")) == ([], [], "3")
        client.assert_open()


@pytest.mark.parametrize("value", ["close", "Close", "x-hop,close"])
def test_connection_close_of_the_application_is_obeyed(server: Server, value: str) -> None:
    with server.connect() as client:
        client.send(request(f"/respond?headers=connection:{value}") + request("/hello"))
        response = client.read_response()
        assert response.body == b"responded"
        assert response.closes
        client.assert_closed()


@pytest.mark.skipif(UVICORN, reason="uvicorn serves 1.0 as 1.1, and any host")
def test_a_client_of_1_0_is_told_of_a_close_and_of_nothing_else(server: Server) -> None:
    asks = [("Connection", "keep-alive")]
    with server.connect() as client:
        target = "/respond?headers=connection:close|content-length:9"
        response = client.ask(target, version="1.0", headers=asks)
        assert response.all("connection") == ["close"]
        client.assert_closed()
    with server.connect() as client:
        refused = client.ask("/hello", version="1.0", headers=[*asks, ("Host", "a b")])
        assert (refused.status, refused.all("connection")) == (400, ["close"])
        client.assert_closed()


def test_connection_close_of_the_application_is_obeyed_on_a_stream(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/respond?headers=connection:close|content-length:9")
        assert response.body == b"responded"
        client.assert_closed()


def test_headers_keep_their_order_and_their_duplicates(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/respond?headers=x-b:1|set-cookie:a=1|x-a:2|set-cookie:b=2|x-b:3")
    ours = [(name, value) for name, value in response.headers if name.startswith(("x-", "set-"))]
    # One name's values stand together, where the first of them stood: an order that HTTP gives no meaning to.
    assert ours == [("x-b", "1"), ("x-b", "3"), ("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x-a", "2")]


def test_an_empty_header_value_is_sent(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/respond?headers=x-empty:").header("x-empty") == ""


def test_two_hundred_response_headers_are_sent(server: Server) -> None:
    pairs = "|".join(f"x-{number}:{number}" for number in range(200))
    with server.connect() as client:
        response = client.ask(f"/respond?headers={pairs}")
    assert sum(name.startswith("x-") for name, _ in response.headers) == 200


def test_a_204_to_head_declares_no_length(server: Server) -> None:
    with server.connect() as client:
        response = client.ask("/status?status=204", method="HEAD")
    assert response.status == 204
    assert "content-length" not in dict(response.headers)


def test_an_answer_that_ends_with_its_connection_does_not_promise_to_keep_it(server: Server) -> None:
    with server.connect() as client:
        client.send(b"GET /chunks?count=3&size=10 HTTP/1.0\r\nHost: test\r\nConnection: keep-alive\r\n\r\n")
        raw = client.read_to_end()
    head = raw.partition(b"\r\n\r\n")[0].lower()
    assert b"keep-alive" not in head
    assert raw.endswith(b"c" * 30)
