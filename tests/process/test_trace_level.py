"""`--log-level trace`: what passes between server and application, and connections, a line each."""

from __future__ import annotations

import pytest
from harness import UVICORN, Server, request

pytestmark = pytest.mark.skipif(UVICORN, reason="its lines are nearly the same, and not quite")


def test_each_message_has_a_line_and_no_body_is_shown(loop: str) -> None:
    with Server("wire_app:app", "--log-level", "trace", "--loop", loop) as server:
        server.wait_line("ASGI [1] Receive {'type': 'lifespan.startup'}")
        with server.connect() as client:
            port = client.port
            path = "/hello?" + "p" * 5000
            client.send(request(path, method="POST", body=b"secret", headers=[("X-Secret", "secret")]))
            assert client.read_response().status == 200
        server.wait_line(f"127.0.0.1:{port} - HTTP connection lost")
        server.stop()
    own = [line for line in server.stderr.splitlines() if f"127.0.0.1:{port} - " in line]
    assert all(line.startswith(f"TRACE:    127.0.0.1:{port} - ") for line in own)
    said = [line.partition(" - ")[2] for line in own]
    assert (said[0], said[-1]) == ("HTTP connection made", "HTTP connection lost")
    assert said[1].startswith("ASGI [2] Started scope={'type': 'http', ")
    assert "'method': 'POST'" in said[1]
    assert "ASGI [2] Completed" in said
    assert any("Send {'type': 'http.response.start', 'status': 200, 'headers': <" in line for line in said)
    assert any("Send {'type': 'http.response.body', 'body': <5 bytes>" in line for line in said)
    assert "secret" not in server.stderr
    assert max(map(len, own)) < 2000


def test_an_exception_that_passes_has_a_line_and_its_usual_record() -> None:
    with Server("log_app:app", "--log-level", "trace", allow=["Traceback"]) as server:
        assert server.ask("/fail").status == 500
        server.wait_line("Raised RuntimeError")
        server.wait_line("Exception in ASGI application")
        assert "messages.py" not in server.stderr.partition("log_app.py")[0]


def test_at_debug_level_there_is_none_of_it() -> None:
    with Server("wire_app:app", "--log-level", "debug") as server:
        assert server.ask("/hello").status == 200
        server.stop()
        assert "ASGI [" not in server.stderr
        assert "connection" not in server.stderr


def test_no_name_that_a_proxy_gives_can_steer_a_terminal_or_end_a_line() -> None:
    with Server("wire_app:app", "--log-level", "trace") as server:
        with server.connect() as client:
            forged = '\x9b2J\x85forged"\\'
            client.send(request("/hello", headers=[("X-Forwarded-For", forged)]))
            assert client.read_response().status == 200
        line = server.wait_line("ASGI [2] Started")
        assert line.startswith(r"TRACE:    \xc2\x9b2J\xc2\x85forged\x22\x5c:0 - ASGI [2] Started"), line
        server.stop()
    assert all(letter in "\n\x1b" or " " <= letter <= "~" for letter in server.stderr)
