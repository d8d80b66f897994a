"""HTTP/2 in the clear, as an application sees it: the same scope, the same messages, each stream by itself.

Not frames, floods and windows, which `tests/it/http2.rs` of the network has by its own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest
from harness import UVICORN, Server
from harness.http2 import Http2Client

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has HTTP/2 with another parser only")

names = (f"http2-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Http2Client]:
    with Http2Client(server.port) as client:
        yield client


def test_a_request_has_the_scope_that_it_has_in_http1(client: Http2Client) -> None:
    headers = [("x-one", "1"), ("cookie", "a=b"), ("x-two", "2"), ("cookie", "c=d"), ("x-one", "3")]
    answer = client.ask("/scope?a=%20", headers=headers)
    scope = json.loads(answer.body)
    assert (answer.status, answer.header("server")) == (200, "bridgehead")
    assert answer.header("date") is not None
    assert {key: scope[key] for key in ("type", "http_version", "method", "scheme", "path")} == {
        "type": "http",
        "http_version": "2",
        "method": "GET",
        "scheme": "http",
        "path": "/scope",
    }
    assert "a=%20" in str(scope["query_string"])
    shown = str(scope["headers"])
    assert "a=b; c=d" in shown
    assert shown.index("host") < shown.index("x-one") < shown.index("x-two")


def test_requests_of_a_connection_run_side_by_side(server: Server, client: Http2Client) -> None:
    name = next(names)
    waiting = client.begin(f"/await-disconnect?name={name}&start=yes")
    client.wait(waiting, lambda stream: stream.body == b"begun")
    assert client.ask("/chunks?count=3").body == b"0,1,2,"
    client.reset(waiting)
    assert [message["type"] for message in server.note(name)] == ["http.disconnect"] * 2
    assert client.ask("/chunks?count=1").status == 200


def test_a_stream_that_is_reset_before_its_answer_is_told_to_its_application(
    server: Server, client: Http2Client
) -> None:
    name = next(names)
    waiting = client.begin(f"/await-disconnect?name={name}&start=no")
    server.note(f"{name}-waits")
    client.reset(waiting)
    assert [message["type"] for message in server.note(name)] == ["http.disconnect"] * 2


def test_who_sends_to_a_stream_that_was_reset_is_told_so(server: Server, client: Http2Client) -> None:
    name = next(names)
    sending = client.begin(f"/send-until-gone?name={name}")
    client.wait(sending, lambda stream: stream.body)
    client.reset(sending)
    assert "builtins.OSError" in server.note(name)["kinds"]


def test_a_large_body_goes_both_ways(client: Http2Client) -> None:
    # Some windows of a stream, and not a multiple of one.
    body = bytes(range(256)) * 1025
    messages = json.loads(client.ask("/received", method="POST", body=body).body)
    assert len(messages) >= 1
    assert [message["more_body"] for message in messages] == [True] * (len(messages) - 1) + [False]


def test_trailers_reach_who_takes_them(client: Http2Client) -> None:
    """Whether a head has announced them or not: HTTP/2 asks for no such thing."""
    sums = [("x-sum", "6"), ("x-late", "1"), ("x-late", "2")]
    for target in ("/trailers?announced", "/trailers", "/trailers?whole"):
        answer = client.ask(target, headers=[("te", "trailers")])
        assert (answer.body, answer.trailers) == (b"onetwo", sums)
    answer = client.ask("/trailers?announced")
    assert (answer.body, answer.trailers) == (b"onetwo", [])


def test_trailers_are_offered_where_an_answer_has_a_place_for_them(
    server: Server, client: Http2Client
) -> None:
    for method, is_offered in (("HEAD", False), ("GET", True)):
        name = next(names)
        client.ask(f"/offered?name={name}", method=method, headers=[("te", "trailers")])
        assert ("http.response.trailers" in server.note(name)) == is_offered


HINT = {"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload", b"</b.js>; rel=preload"]}


def test_early_hints_go_ahead_of_the_answer(server: Server, client: Http2Client) -> None:
    start = {"type": "http.response.start", "status": 200}
    messages = [HINT, start, {"type": "http.response.body", "body": b"body"}]
    name = next(names)
    answer = client.ask(f"/messages?name={name}", method="POST", body=repr(messages).encode())
    assert [dict(each)[":status"] for each in answer.interim] == ["103"]
    assert [value for key, value in answer.interim[0] if key == "link"] == [
        "</a.css>; rel=preload",
        "</b.js>; rel=preload",
    ]
    assert (answer.status, answer.body) == (200, b"body")
    assert server.note(name) == {"position": None}


def test_a_hint_is_refused_behind_a_head_and_where_it_cannot_go(server: Server, client: Http2Client) -> None:
    name = next(names)
    body = repr([{"type": "http.response.start", "status": 200}, HINT]).encode()
    assert client.ask(f"/messages?name={name}", method="POST", body=body).interim == []
    report = server.note(name)
    assert (report["position"], report["kind"]) == (1, "bridgehead.MisuseError")
    server.ask(f"/messages?name={name}", method="POST", body=repr([HINT]).encode())
    report = server.note(name)
    assert (report["position"], report["kind"]) == (0, "bridgehead.MisuseError")


def test_a_body_has_a_largest_whether_its_length_is_said_or_not() -> None:
    with Server("asgi_app:app", "--limit-body", "1000") as server, Http2Client(server.port) as client:
        for size, status in ((1000, 200), (1001, 413), (300_000, 413)):
            for headers in ([("content-length", str(size))], []):
                number = client.begin("/received", method="POST", headers=headers, ends=False)
                # What is refused by its length is not sent any more.
                if status == 200 or not headers:
                    client.send(number, b"x" * min(size, 60_000), ends=size <= 60_000)
                assert client.wait(number, lambda stream: stream.headers).status == status, (size, headers)
        assert client.ask("/received", method="POST", body=b"x").status == 200
    assert "Traceback" not in server.stderr


def test_a_request_that_takes_too_long_is_answered_504_and_costs_its_stream_alone() -> None:
    with Server("asgi_app:app", "--timeout-request", "200ms") as server, Http2Client(server.port) as client:
        name = next(names)
        number = client.begin(f"/await-disconnect?name={name}&start=no")
        assert client.answer(number).status == 504
        assert client.ask("/chunks?count=1").status == 200


def test_an_answer_to_head_has_no_body(client: Http2Client) -> None:
    answer = client.ask("/chunks?count=3", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")


def test_the_access_line_says_http2() -> None:
    with Server("asgi_app:app") as server, Http2Client(server.port) as client:
        assert client.ask("/chunks?count=1").status == 200
        server.wait_line('"GET /chunks?count=1 HTTP/2" 200 OK', stream="stdout")


def test_a_stop_lets_streams_finish_and_waits_for_no_client_that_is_silent() -> None:
    with Server("asgi_app:app") as server, Http2Client(server.port) as client:
        running = client.begin("/until-shutdown")
        client.wait(running, lambda stream: stream.body)
        # h2 takes nothing more of a server that has said goodbye; the network's tests have another client.
        server.stop()
        server.wait_line('"GET /until-shutdown HTTP/2" 200 OK', stream="stdout")


def test_a_client_that_waits_and_answers_no_ping_is_given_up(loop: str) -> None:
    pings = ("--http2-ping-interval", "50ms", "--http2-ping-timeout", "50ms")
    with Server("asgi_app:app", "--loop", loop, *pings) as server, Http2Client(server.port) as client:
        name = next(names)
        client.begin(f"/await-disconnect?name={name}&start=no")
        assert [message["type"] for message in server.note(name)] == ["http.disconnect"] * 2


def test_http2_can_be_switched_off() -> None:
    with Server("asgi_app:app", "--no-http2") as server, server.connect() as client:
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert client.read_response().status == 505


def test_a_preface_that_is_cut_anywhere_is_one() -> None:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    with Server("asgi_app:app") as server, server.connect() as other:
        for cut in range(1, len(preface)):
            with server.connect() as client:
                client.send(preface[:cut])
                # A whole exchange elsewhere: the server has had the time to see half of it.
                assert other.ask("/hello").status == 200
                client.send(preface[cut:])
                # Our settings come first, in a frame that has no answer of HTTP/1 in it.
                assert client.read_exactly(9)[3:5] == b"\x04\x00", cut
