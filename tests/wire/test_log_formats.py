"""Access lines with the fields that an operator names, and every line as an object of JSON."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from harness import Server, request

from bridgehead import access_format
from bridgehead.config import Config
from bridgehead.errors import StartError

EVERY = " ".join(f"{name}=[{{{name}}}]" for name in access_format.FIELDS)
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


def test_a_format_has_the_fields_that_it_names(loop: str) -> None:
    with Server("log_app:app", "--access-log-format", EVERY, "--loop", loop) as server:
        with server.connect() as client:
            port = client.port
            client.send(request("/hello?a=1", method="POST", body=b"twelve bytes"))
            assert client.read_response().body == b"hello"
        line = server.wait_line("/hello", stream="stdout")
        expected = (
            rf"bytes_in=\[12\] bytes_out=\[5\] client=\[127\.0\.0\.1:{port}\] duration=\[(\d+\.\d{{6}})\] "
            rf"method=\[POST\] protocol=\[HTTP/1\.1\] request_id=\[-\] status=\[200\] "
            rf"target=\[/hello\?a=1\] time=\[({TIME})\] traceparent=\[-\]\n"
        )
        found = re.fullmatch(expected, line)
        assert found, line
        assert 0 < float(found[1]) < 60
        assert abs((datetime.now(UTC) - datetime.fromisoformat(found[2])).total_seconds()) < 60


def test_bodies_are_counted_however_they_come(loop: str) -> None:
    form = "{bytes_in} {bytes_out} {target}"
    with Server("wire_app:app", "--access-log-format", form, "--loop", loop) as server:
        with server.connect() as client:
            chunked = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
            head = b"POST /echo?chunked HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
            client.send(head + chunked)
            assert client.read_response().body == b"hello world"
            client.send(request("/echo?large", method="POST", body=b"x" * 300_000))
            assert len(client.read_response().body) == 300_000
            client.send(request("/hello?head", method="HEAD"))
            client.read_response(method="HEAD")
        assert server.wait_line("chunked", stream="stdout") == "11 11 /echo?chunked\n"
        assert server.wait_line("large", stream="stdout") == "300000 300000 /echo?large\n"
        assert server.wait_line("head", stream="stdout") == "0 0 /hello?head\n"


def test_headers_of_request_and_response_are_shown_and_escaped() -> None:
    asked = "{{{header{User-Agent}}}} {header{x-many}} {header{absent}}"
    form = asked + " {response{X-Served-By}} {response{x-quote}}"
    with Server("log_app:app", "--access-log-format", form) as server:
        many = [("x-many", "a"), ("x-many", "b")]
        with server.connect() as client:
            client.send(request("/hello", headers=[("user-agent", 'curl"\\\xff'), *many]))
            assert client.read_response().status == 200
            line = server.wait_line("curl", stream="stdout")
        assert line == "{curl\\x22\\x5c\\xff} a, b - log_app a\\x22b\\x5cc\n"


def test_a_long_header_is_cut() -> None:
    with Server("log_app:app", "--access-log-format", "<{header{x-long}}>") as server:
        with server.connect() as client:
            client.send(request("/hello", headers=[("x-long", "x" * 5000)]))
            client.read_response()
        assert server.wait_line("<", stream="stdout") == f"<{'x' * 1024}...>\n"


def test_a_head_that_could_not_be_read_has_dashes_for_fields() -> None:
    form = "{method} {target} {protocol} {status} {bytes_in} {bytes_out} {header{host}} {duration}"
    with Server("log_app:app", "--access-log-format", form) as server:
        with server.connect() as client:
            client.send(b"no http\r\n\r\n")
            response = client.read_response()
            assert response.status == 400
        expected = f"- - - 400 0 {len(response.body)} - -\n"
        assert server.wait_line("400", stream="stdout") == expected


def test_a_head_that_could_not_be_read_is_null_in_json_but_for_what_was_sent() -> None:
    with Server("log_app:app", "--log-format", "json") as server:
        with server.connect() as client:
            client.send(b"no http\r\n\r\n")
            response = client.read_response()
        line = json.loads(server.wait_line("400", stream="stdout"))
        assert [line[name] for name in ("method", "target", "protocol", "duration")] == [None] * 4
        assert (line["bytes_in"], line["bytes_out"]) == (0, len(response.body))


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("{durration}", "there is no field 'durration'", "did you mean `duration`?"),
        ("{bytes}", "there is no field 'bytes'", "did you mean `bytes_in`?"),
        ("{user-agent}", "there is no field 'user-agent'", "the fields are bytes_in, bytes_out, client,"),
        ("{headers{host}}", "there is no field 'headers'", "did you mean `header`?"),
        ("{header}", "the field 'header' needs a header's name", "write {header{user-agent}}"),
        ("{header{a b}}", "'a b' is not the name of a header", "write it as {header{user-agent}}"),
        ("{status", "the brace at character 1 of '{status' has no partner", "fields are in braces"),
        ("status}", "the brace at character 7 of 'status}' has no partner", "fields are in braces"),
        ("a\nb", "a format is one line of printable characters", "fields are in braces"),
        ("", "'' is not a format", "fields are in braces"),
        ("%(h)s {{}}", "'%(h)s {{}}' has no field: each line would be the same", "fields are in braces"),
    ],
)
def test_a_format_with_a_mistake_names_it_and_what_may_have_been_meant(
    written: str, message: str, hint: str
) -> None:
    with pytest.raises(StartError) as refused:
        Config(access_log_format=written)
    assert refused.value.message == f"access_log_format: {message}"
    assert refused.value.hint.startswith(hint)


def test_a_format_with_a_mistake_ends_the_start() -> None:
    with Server("log_app:app", "--access-log-format", "{durration}", ready=False) as server:
        assert server.wait_exit() == 3
        assert "--access-log-format: there is no field 'durration'" in server.stderr
        assert "hint: did you mean `duration`?" in server.stderr


def objects(output: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in output.splitlines()]
    assert all(list(line)[:4] == ["time", "level", "logger", "message"] for line in lines)
    assert all(re.fullmatch(TIME, line["time"]) for line in lines)
    assert output.isascii()
    return lines


def test_as_json_every_line_of_both_logs_is_an_object(loop: str) -> None:
    options = ("--log-format", "json", "--log-level", "debug", "--loop", loop)
    with Server("log_app:app", *options, allow=["Traceback"]) as server:
        with server.connect() as client:
            port = client.port
            client.send(request("/hello?quote=%22", method="POST", body=b"body"))
            client.read_response()
            client.ask("/fail")
            server.wait_line("/fail", stream="stdout")
        server.stop()
        first, second = objects(server.stdout)
        del first["time"]
        assert isinstance(first.pop("duration"), float)
        assert first == {
            "level": "INFO",
            "logger": "bridgehead.access",
            "message": f'127.0.0.1:{port} - "POST /hello?quote=%22 HTTP/1.1" 200',
            "client": f"127.0.0.1:{port}",
            "method": "POST",
            "target": "/hello?quote=%22",
            "protocol": "HTTP/1.1",
            "status": 200,
            "bytes_in": 4,
            "bytes_out": 5,
        }
        assert second["status"] == 500
        said = objects(server.stderr)
        assert said[0]["message"] == f"Started server process [{server.pid}]"
        assert {line["logger"] for line in said} == {"bridgehead.error"}
        (failed,) = (line for line in said if line["level"] == "ERROR")
        assert failed["message"] == "Exception in ASGI application"
        assert failed["exception"].startswith("Traceback (most recent call last):\n")
        assert failed["exception"].endswith("RuntimeError: theirs")
        assert all("exception" not in line for line in said if line is not failed)


def test_as_json_a_format_says_which_members_there_are() -> None:
    form = "text is left out {status} {header{user-agent}} {time} {status} {header{absent}}"
    with Server("log_app:app", "--log-format", "json", "--access-log-format", form) as server:
        with server.connect() as client:
            client.send(request("/hello", headers=[("user-agent", 'a"\xe9')]))
            client.read_response()
            server.wait_line("status", stream="stdout")
        (line,) = objects(server.stdout)
        assert list(line)[4:] == ["status", "header{user-agent}", "header{absent}"]
        assert (line["status"], line["header{user-agent}"], line["header{absent}"]) == (200, 'a"é', None)


@pytest.mark.parametrize("target", [b'/"\\', b"/\xc3\xa9", b"/\xff", b"/\xe2\x80\xa8", b"/" + b"x" * 5000])
def test_as_json_no_client_can_break_the_line(target: bytes) -> None:
    with Server("log_app:app", "--log-format", "json") as server:
        with server.connect() as client:
            client.send(b"GET " + target + b" HTTP/1.1\r\nHost: test\r\n\r\n")
            status = client.read_response().status
            server.wait_line("message", stream="stdout")
        (line,) = objects(server.stdout)
        assert line["status"] == status
        assert len(server.stdout) < 3000


def test_json_goes_through_a_filter_as_it_is(loop: str) -> None:
    options = ("--log-format", "json", "--loop", loop)
    with Server("log_app:app", *options, env={"LOGGING": "filtered"}) as server:
        server.ask("/health")
        server.ask("/hello")
        server.wait_line("/hello", stream="stdout")
        (line,) = objects(server.stdout)
        assert (line["logger"], line["target"]) == ("bridgehead.access", "/hello")
