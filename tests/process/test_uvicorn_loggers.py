"""uvicorn's loggers work for whoever configures them, as under uvicorn.

The ways are functions of `log_app.py`. Not `--log-config`, which has a file of its own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from harness import UVICORN, Server, request


def sunk(output: str) -> list[str]:
    return [line.rstrip() for line in output.splitlines() if line.startswith("sink")]


def serve(way: str, *options: str, loop: str = "asyncio", allow: tuple[str, ...] = ()) -> Server:
    return Server("log_app:app", "--loop", loop, *options, env={"LOGGING": way}, allow=allow)


def test_a_copy_of_uvicorns_own_configuration_gets_every_record_once(loop: str) -> None:
    with serve("uvicorns_own", loop=loop, allow=("Traceback",)) as server:
        with server.connect() as client:
            port = client.port
            assert client.ask("/hello?a=%20b").status == 200
            assert client.ask("/fail").status == 500
            server.wait_line("path=/fail", stream="stdout")
        server.stop()
        access = f"sink uvicorn.access client=127.0.0.1:{port} method=GET"
        assert server.stdout.splitlines() == [
            f"{access} path=/hello?a=%20b http=1.1 status=200",
            f"{access} path=/fail http=1.1 status=500",
        ]
        said = [line.removeprefix("sink uvicorn.error ") for line in sunk(server.stderr)]
        assert said[:2] == [
            f"INFO Started server process [{server.pid}]",
            "INFO Waiting for application startup.",
        ]
        assert said[-2:] == ["INFO Shutting down", f"INFO Finished server process [{server.pid}]"]
        assert len([line for line in said if "Exception in ASGI application" in line]) == 1
        assert server.stderr.count("RuntimeError: theirs") == 1
        assert "INFO:" not in server.stdout + server.stderr


@pytest.mark.parametrize("way", ["intercepted", "intercepted_each"])
def test_an_interceptor_gets_every_record_once(way: str) -> None:
    with serve(way) as server:
        with server.connect() as client:
            port = client.port
            assert client.ask("/fail").status == 500
            assert client.ask("/log").status == 200
            server.wait_line("/log", stream="stdout")
        server.stop()
        assert server.stdout.splitlines() == [
            f'sink uvicorn.access | INFO | 127.0.0.1:{port} - "GET /fail HTTP/1.1" 500',
            f'sink uvicorn.access | INFO | 127.0.0.1:{port} - "GET /log HTTP/1.1" 200',
        ]
        lines = sunk(server.stderr)
        failed = "sink uvicorn.error | ERROR | Exception in ASGI application | RuntimeError('theirs')"
        assert lines.count(failed) == 1
        assert lines.count("sink uvicorn.error | WARNING | said by the application") == 1
        assert len([line for line in lines if "Shutting down" in line]) == 1
        assert len(lines) == server.stderr.count("\n")


@pytest.mark.parametrize(("way", "family"), [("beside", "uvicorn"), ("ours", "bridgehead")])
def test_one_more_handler_takes_nothing_from_ours(way: str, family: str) -> None:
    with serve(way) as server:
        with server.connect() as client:
            port = client.port
            assert client.ask("/hello").status == 200
            server.wait_line("INFO: ", stream="stdout")
            server.wait_line("sink", stream="stdout")
        server.stop()
        line = f'127.0.0.1:{port} - "GET /hello HTTP/1.1" 200'
        assert server.stdout.count(f"INFO:     {line} OK\n") == 1
        assert server.stdout.count(f"sink {family}.access | INFO | {line}\n") == 1
        assert server.stderr.count(f"sink {family}.error | INFO | Shutting down") == 1
        assert server.stderr.count("INFO:     Shutting down") == 1


def test_a_filter_on_the_access_logger_is_heard() -> None:
    with serve("filtered") as server:
        with server.connect() as client:
            client.ask("/health?1")
            client.ask("/hello")
            client.ask("/health?2")
            client.ask("/hello?last")
            line = server.wait_line("/hello?last", stream="stdout")
        assert re.fullmatch(r'INFO:     127\.0\.0\.1:\d+ - "GET /hello\?last HTTP/1\.1" 200 OK\n', line)
        assert "health" not in server.stdout
        assert server.stdout.count("/hello") == 2


def test_a_formatter_given_to_our_handler_is_used() -> None:
    with serve("reformatted") as server:
        server.ask("/hello")
        line = server.wait_line("/hello", stream="stdout")
        assert re.fullmatch(r'sink 127\.0\.0\.1:\d+ - "GET /hello HTTP/1\.1" 200\n', line)


@pytest.mark.parametrize("way", ["quiet", "disabled"])
def test_a_logger_that_is_silenced_costs_no_line(way: str) -> None:
    with serve(way) as server:
        assert server.ask("/hello").status == 200
        server.stop()
        assert server.stdout == ""
        assert "INFO:     Shutting down" in server.stderr


@pytest.mark.parametrize("way", ["swept", "basic"])
def test_a_configuration_that_does_not_mean_us_changes_nothing(way: str) -> None:
    with serve(way) as server:
        server.ask("/hello")
        server.wait_line('"GET /hello HTTP/1.1" 200 OK', stream="stdout")
        server.stop()
        assert server.stdout.count("\n") == 1
        assert server.stderr.count("INFO:     Shutting down") == 1


def test_what_an_application_says_by_uvicorns_logger_is_shown() -> None:
    with Server("log_app:app") as server:
        server.ask("/log")
        assert server.wait_line("said by") == "WARNING:  said by the application\n"


def test_refused_requests_and_departed_clients_reach_the_loggers_too(loop: str) -> None:
    with serve("uvicorns_own", loop=loop) as server:
        with server.connect() as client:
            client.send(b"GET /no-host HTTP/1.1\r\n\r\n")
            assert client.read_response().status == 400
        with server.connect() as client:
            client.send(b"no http\r\n\r\n")
            assert client.read_response().status == 400
        server.wait_line("method=GET path=/no-host http=1.1 status=400", stream="stdout")
        server.wait_line("method=- path=- http=- status=400", stream="stdout")


def test_what_a_client_sends_is_escaped_before_loggers_get_it() -> None:
    with serve("uvicorns_own") as server, server.connect() as client:
        client.send(b"GET /a\\b?\xc2\x85 HTTP/1.1\r\nHost: test\r\n\r\n")
        if client.read_response().status == 200:
            server.wait_line("path=/a\\x5cb?\\xc2\\x85 ", stream="stdout")


def test_lines_of_a_connection_come_in_order_and_all_before_the_end(loop: str) -> None:
    with serve("uvicorns_own", loop=loop) as server:
        with server.connect() as client:
            client.send(b"".join(request(f"/hello?{number}.") for number in range(300)))
            for _ in range(300):
                client.read_response()
        server.stop()
        numbers = re.findall(r"path=/hello\?(\d+)\.", server.stdout)
        assert numbers == [str(number) for number in range(300)]


def test_no_access_log_is_no_access_log_for_loggers_too() -> None:
    with serve("beside", "--no-access-log") as server:
        server.ask("/hello")
        server.stop()
        assert "/hello" not in server.stdout


VAIN = "does nothing: the handlers that uvicorn.access was given have formatters of their own"
FORM = ("--access-log-format", "form {status}")


@pytest.mark.skipif(UVICORN, reason="uvicorn has no such option")
@pytest.mark.parametrize("way", ["uvicorns_own", "intercepted"])
def test_a_format_that_no_handler_writes_is_told_of_once(way: str) -> None:
    with serve(way, *FORM) as server:
        server.ask("/hello")
        server.stop()
        assert server.stderr.count(f"--access-log-format {VAIN}") == 1
        assert "form 200" not in server.stdout
    with serve(way, "--log-format", "json") as server:
        server.stop()
        assert server.stderr.count("--log-format json does nothing for access lines: ") == 1


@pytest.mark.skipif(UVICORN, reason="uvicorn has no such option")
@pytest.mark.parametrize("way", ["", "beside", "filtered"])
def test_a_format_that_a_handler_of_ours_writes_is_not_told_of(way: str) -> None:
    with serve(way, *FORM) as server:
        server.ask("/hello")
        server.wait_line("form 200", stream="stdout")
        server.stop()
        assert "does nothing" not in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn has no such option")
def test_a_format_that_a_configuration_has_no_handler_for_is_told_of(tmp_path: Path) -> None:
    handler = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr"}
    logs = {"version": 1, "handlers": {"out": handler}, "root": {"handlers": ["out"], "level": "INFO"}}
    file = tmp_path / "logs.json"
    file.write_text(json.dumps(logs))
    with Server("log_app:app", "--log-config", str(file), *FORM) as server:
        server.stop()
        assert server.stderr.count(f"--access-log-format {VAIN}") == 1
