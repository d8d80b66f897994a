"""What an application may send, and what it hears when it may not."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Response, Server
from harness.server import COMPLAINTS

START = '{"type": "http.response.start", "status": 200}'
BODY = '{"type": "http.response.body", "body": b"x"}'
MORE = '{"type": "http.response.body", "body": b"x", "more_body": True}'

names = (f"misuse-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop, allow=["Traceback"]) as server:
        yield server


def send_messages(server: Server, *messages: str) -> tuple[Response, dict[str, Any]]:
    """The answer to an application that sends `messages`, and what its `send` raised."""
    name = next(names)
    response = server.ask(
        f"/messages?name={name}", method="POST", body=("[" + ", ".join(messages) + "]").encode()
    )
    report: dict[str, Any] = server.note(name)
    return response, report


def test_headers_are_optional(server: Server) -> None:
    response, report = send_messages(server, START, BODY)
    assert (response.status, response.body, report["position"]) == (200, b"x", None)


def test_a_body_is_optional(server: Server) -> None:
    response, _ = send_messages(server, START, '{"type": "http.response.body"}')
    assert (response.status, response.body) == (200, b"")


@pytest.mark.parametrize("status", [*(each for each in HTTPStatus if each >= 200), 299, 599])
def test_a_status_has_the_words_that_python_has_for_it(server: Server, status: int) -> None:
    start = START.replace("200", str(int(status)))
    response, _ = send_messages(server, start, '{"type": "http.response.body"}')
    phrase = status.phrase if isinstance(status, HTTPStatus) else ""
    assert response.head.split(b"\r\n")[0] == f"HTTP/1.1 {int(status)} {phrase}".encode()


def test_an_empty_piece_of_body_has_the_head_leave(server: Server) -> None:
    with server.connect() as client:
        client.send(b"GET /head-first HTTP/1.1\r\nHost: test\r\n\r\n")
        assert client.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "body",
    [
        'b"bytes"',
        'bytearray(b"bytes")',
        'memoryview(b"bytes")',
        'memoryview(bytearray(b"bytes"))',
        'memoryview(b"xxbytesxx")[2:7]',
        'memoryview(b"b_y_t_e_s_")[::2]',
        pytest.param('__import__("array").array("B", b"bytes")', id="array"),
        pytest.param('(lambda m: m.write(b"bytes") and m)(__import__("mmap").mmap(-1, 5))', id="mmap"),
    ],
)
def test_any_bytes_like_object_is_a_body(server: Server, body: str) -> None:
    for message in (
        f'{{"type": "http.response.body", "body": {body}}}',
        f'{{"type": "http.response.body", "body": {body}, "more_body": True}}',
    ):
        response, report = send_messages(server, START, message, '{"type": "http.response.body"}')
        if "True" in message:
            assert report["position"] is None, report
        assert response.body == b"bytes"


@pytest.mark.parametrize(
    "headers",
    [
        '[[b"x-one", b"1"], [b"x-two", b"2"]]',
        '((b"x-one", b"1"), (b"x-two", b"2"))',
        '{b"x-one": b"1", b"x-two": b"2"}.items()',
        '(pair for pair in [(b"x-one", b"1"), (b"x-two", b"2")])',
        '[(bytearray(b"x-one"), memoryview(b"1")), (b"x-two", b"2")]',
    ],
)
def test_headers_are_any_iterable_of_pairs(server: Server, headers: str) -> None:
    response, report = send_messages(
        server, f'{{"type": "http.response.start", "status": 200, "headers": {headers}}}', BODY
    )
    assert report["position"] is None, report
    assert [pair for pair in response.headers if pair[0].startswith("x-")] == [("x-one", "1"), ("x-two", "2")]


@pytest.mark.parametrize("name", [b"a", b"te", b"connection", b"content-length"])
def test_headers_that_never_end_are_refused_at_their_send(server: Server, name: bytes) -> None:
    pairs = f'__import__("itertools").repeat(({name!r}, b"1"))'
    _, report = send_messages(server, f'{{"type": "http.response.start", "status": 200, "headers": {pairs}}}')
    assert report["kind"] == "bridgehead.MisuseError"
    assert report["says"] == "one header more came than the 24576 that a response can hold"


@pytest.mark.parametrize("more", ["False", "0", "None"])
def test_more_body_that_is_not_true_ends_the_answer(server: Server, more: str) -> None:
    response, _ = send_messages(
        server, START, f'{{"type": "http.response.body", "body": b"x", "more_body": {more}}}'
    )
    assert response.body == b"x"


def test_unknown_keys_are_ignored(server: Server) -> None:
    response, report = send_messages(
        server,
        '{"type": "http.response.start", "status": 200, "headers": [], "trailers": False, "x": 1}',
        '{"type": "http.response.body", "body": b"x", "more_body": False, "unknown": 1}',
    )
    assert (response.status, response.body, report["position"]) == (200, b"x", None)


def test_a_message_may_be_used_again_and_its_body_changed_after_send(server: Server) -> None:
    assert server.ask("/reuse-message").body == b"0123456789!"


def test_a_header_value_keeps_bytes_above_ascii(server: Server) -> None:
    response, _ = send_messages(
        server, '{"type": "http.response.start", "status": 200, "headers": [(b"x", b"\\xe9\\xff")]}', BODY
    )
    assert response.header("x") == "\xe9\xff"


def test_a_tab_in_a_header_value_is_allowed(server: Server) -> None:
    response, _ = send_messages(
        server, '{"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\\tb")]}', BODY
    )
    assert response.header("x") == "a\tb"


def test_an_upper_case_header_name_is_sent(server: Server) -> None:
    response, report = send_messages(
        server, '{"type": "http.response.start", "status": 200, "headers": [(b"X-Upper", b"1")]}', BODY
    )
    assert report["position"] is None
    assert response.header("x-upper") == "1"


def header(pair: str) -> str:
    return f'{{"type": "http.response.start", "status": 200, "headers": [{pair}]}}'


def status(value: str) -> str:
    return f'{{"type": "http.response.start", "status": {value}}}'


# What is sent last is what must raise. The word is one that its sentence must hold.
MISUSES: dict[str, tuple[list[str], str]] = {
    "a body before the start": ([BODY], "http.response.body"),
    "a second start": ([START, START], "http.response.start"),
    "a second start in the body": ([START, MORE, START], "http.response.start"),
    "a body after the end": ([START, BODY, BODY], "http.response.body"),
    "a start after the end": ([START, BODY, START], "http.response.start"),
    "an unknown type": (['{"type": "http.response.push-me"}'], "http.response.push-me"),
    "an unknown type in the body": ([START, '{"type": "http.nonsense"}'], "http.nonsense"),
    "a message of a websocket": (['{"type": "websocket.accept"}'], "websocket.accept"),
    "a message of the lifespan": (['{"type": "lifespan.startup.complete"}'], "lifespan.startup.complete"),
    "an empty type": (['{"type": ""}'], "type"),
    "no type": (['{"status": 200}'], "type"),
    "an empty message": (["{}"], "type"),
    "a type that is no str": (['{"type": b"http.response.start", "status": 200}'], "type"),
    "a type that is None": (['{"type": None}'], "type"),
    "a type that cannot be encoded": (['{"type": "\\udcff"}'], "type"),
    "None for a message": (["None"], "dict"),
    "a str for a message": (['"http.response.start"'], "dict"),
    "a list for a message": (["[]"], "dict"),
    "a number for a message": (["200"], "dict"),
    "no status": (['{"type": "http.response.start", "headers": []}'], "status"),
    "a status of 99": ([status("99")], "99"),
    "a status of 0": ([status("0")], "0"),
    "a status of 100": ([status("100")], "100"),
    "a status of 101": ([status("101")], "101"),
    "a status of 103": ([status("103")], "103"),
    "a status of 1000": ([status("1000")], "1000"),
    "a status of -1": ([status("-1")], "-1"),
    "a status of 65736": ([status("65736")], "65736"),
    "a status beyond 64 bits": ([status("2 ** 80")], "1208925819614629174706176"),
    "a status of 20 digits": ([status("10 ** 19")], "status 10000000000000000000 came; 200 to 999"),
    "a status that cannot be written": ([status("10 ** 5000")], "thousands of digits"),
    "a status that is a str": ([status('"200"')], "status"),
    "a status that is bytes": ([status('b"200"')], "status"),
    "a status that is a float": ([status("200.0")], "status"),
    "a status that is None": ([status("None")], "status"),
    "a status that is a bool": ([status("True")], "status"),
    "headers that are None": (['{"type": "http.response.start", "status": 200, "headers": None}'], "headers"),
    "headers that are a number": (
        ['{"type": "http.response.start", "status": 200, "headers": 1}'],
        "headers",
    ),
    "headers that are a str": (
        ['{"type": "http.response.start", "status": 200, "headers": "a: b"}'],
        "header",
    ),
    "headers that are a dict": (
        ['{"type": "http.response.start", "status": 200, "headers": {b"a": b"b"}}'],
        "header",
    ),
    "a header of one": ([header('(b"a",)')], "header"),
    "a header of three": ([header('(b"a", b"b", b"c")')], "header"),
    "a header that is bytes": ([header('b"ab"')], "header"),
    "a header that is a str of two": ([header('"ab"')], "each header as a pair"),
    "a header that is a dict of two": ([header('{b"a": 1, b"b": 2}')], "each header as a pair"),
    "a header that is a set of two": ([header('{b"a", b"b"}')], "each header as a pair"),
    "a name that is too long": ([header('(b"n" * 70_000, b"")')], "70000 bytes came; at most 65535"),
    "trailers that are a str": (
        ['{"type": "http.response.start", "status": 200, "trailers": "yes"}'],
        "`trailers` of `http.response.start` came as str; a bool",
    ),
    "a more_body that is a str": (
        [START, '{"type": "http.response.body", "more_body": "no"}'],
        "`more_body` of `http.response.body` came as str; a bool",
    ),
    "a header that is None": ([header("None")], "header"),
    "a name that is no ASCII": ([header('("ä", b"b")')], "bytes"),
    "a value that is no ASCII": ([header('(b"a", "ä")')], "bytes"),
    "a name that is None": ([header('(None, b"b")')], "bytes"),
    "a value that is None": ([header('(b"a", None)')], "bytes"),
    "a value that is a number": ([header('(b"content-length", 1)')], "bytes"),
    "an empty name": ([header('(b"", b"b")')], "header"),
    "a space in a name": ([header('(b"a b", b"c")')], "header"),
    "a colon in a name": ([header('(b"a:", b"c")')], "header"),
    "a pseudo-header": ([header('(b":status", b"200")')], "header"),
    "a line break in a name": ([header('(b"a\\r\\nb", b"c")')], "header"),
    "NUL in a name": ([header('(b"a\\x00", b"c")')], "header"),
    "bytes above ASCII in a name": ([header('(b"\\xe9", b"c")')], "header"),
    "a line break in a value": ([header('(b"a", b"b\\r\\nx-split: 1")')], "header"),
    "a carriage return in a value": ([header('(b"a", b"b\\rc")')], "header"),
    "a line feed in a value": ([header('(b"a", b"b\\nc")')], "header"),
    "NUL in a value": ([header('(b"a", b"b\\x00c")')], "header"),
    "escape in a value": ([header('(b"a", b"b\\x1bc")')], "header"),
    "delete in a value": ([header('(b"a", b"b\\x7fc")')], "header"),
    "a length that is no number": ([header('(b"content-length", b"five")')], "content-length"),
    "a negative length": ([header('(b"content-length", b"-1")')], "content-length"),
    "a length with a sign": ([header('(b"content-length", b"+1")')], "content-length"),
    "an empty length": ([header('(b"content-length", b"")')], "content-length"),
    "a length beyond 64 bits": ([header('(b"content-length", b"99999999999999999999")')], "content-length"),
    "two different lengths": (
        [header('(b"content-length", b"1"), (b"content-length", b"2")')],
        "content-length",
    ),
    "a body that is a str": ([START, '{"type": "http.response.body", "body": "text"}'], "body"),
    "a body that is None": ([START, '{"type": "http.response.body", "body": None}'], "body"),
    "a body that is a list": ([START, '{"type": "http.response.body", "body": [1, 2]}'], "body"),
    "a body that is a number": ([START, '{"type": "http.response.body", "body": 5}'], "body"),
    "a later body that is a str": ([START, MORE, '{"type": "http.response.body", "body": "text"}'], "body"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_raises_at_the_applications_own_send_with_a_sentence(server: Server, name: str) -> None:
    messages, word = MISUSES[name]
    response, report = send_messages(server, *messages)
    assert report["position"] == len(messages) - 1, report
    assert word in report["says"].lower()
    assert " " in report["says"], "not a sentence"
    assert "builtins.OSError" not in report["kinds"], "a misuse is not a client that left"
    assert b"x-split" not in response.head
    if len(messages) == 1:
        # Nothing had been sent: the application was still free to answer.
        assert response.status == 200
        assert response.json()["says"] == report["says"]
    assert server.ask("/hello").status == 200


def test_a_misuse_says_what_came_and_what_was_due(server: Server) -> None:
    _, report = send_messages(server, BODY)
    assert "http.response.body" in report["says"]
    assert "http.response.start" in report["says"]


def test_a_misuse_that_the_application_does_not_catch_is_a_500(server: Server) -> None:
    response = server.ask("/uncaught-misuse")
    assert response.status == 500
    assert server.ask("/hello").status == 200


@pytest.mark.skipif(UVICORN, reason="uvicorn has no such exception")
def test_after_a_misuse_in_the_body_the_answer_can_still_be_ended(server: Server) -> None:
    response, report = send_messages(server, START, MORE, '{"type": "http.response.body", "body": "text"}')
    assert report["position"] == 2
    assert (response.status, response.body) == (200, b"x")


def test_a_thousand_misuses_leave_the_worker_as_it_was(server: Server) -> None:
    alone = [messages[0] for messages, _ in MISUSES.values() if len(messages) == 1]
    with server.connect() as client:
        for number in range(1000):
            message = alone[number % len(alone)]
            assert (
                client.ask("/messages?name=bulk", method="POST", body=f"[{message}]".encode()).status == 200
            )
        client.assert_open()


def test_sends_of_several_tasks_each_arrive_whole(server: Server) -> None:
    body = server.ask("/interleaved-sends").body
    assert sorted(body) == sorted(b"a" * 100 + b"b" * 100 + b"c" * 100)


def test_a_message_sent_by_a_subclass_of_dict_is_a_message(server: Server) -> None:
    assert server.ask("/dict-subclass").body == b"subclass"


FORGETS = """
import asyncio


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    send({"type": "http.response.body", "body": b"forgotten"})
    send({"type": "http.response.body", "body": b"closed"}).close()
    cancelled = [asyncio.create_task(each) for each in (receive(), send({}))]
    for each in cancelled:
        each.cancel()
    await asyncio.wait(cancelled)
    await send({"type": "http.response.body", "body": b"sent"})
"""


@pytest.mark.runtimes
def test_who_forgets_to_await_is_warned_where_that_was_and_nobody_else_is(loop: str, tmp_path: Path) -> None:
    (tmp_path / "forgets.py").write_text(FORGETS)
    with Server("forgets:app", "--loop", loop, cwd=tmp_path, allow=COMPLAINTS) as server:
        assert server.ask("/").body == b"sent"
        server.stop()
        told = re.findall(
            r"forgets.py:(\d+): RuntimeWarning: coroutine '(?:\w+\.)?(\w+)' was never", server.stderr
        )
    assert told == [("8", "receive"), ("10", "send")]
