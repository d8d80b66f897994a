"""ASGI 2 and WSGI applications: what is detected, what they are given, what becomes of errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import UVICORN, Server, request

BODY = bytes(range(256)) * 4096


@pytest.mark.parametrize(
    ("name", "interface"),
    [
        ("asgi3", "asgi3"),
        ("Asgi3Class", "asgi3"),
        ("Asgi2", "asgi2"),
        ("asgi2_function", "asgi2"),
        pytest.param("asgi3_in_a_plain_function", "asgi3", marks=pytest.mark.skipif(UVICORN, reason="≠")),
        pytest.param("asgi3_behind_any_arguments", "asgi3", marks=pytest.mark.skipif(UVICORN, reason="≠")),
    ],
)
def test_the_interface_is_found_by_what_the_application_can_be_called_with(name: str, interface: str) -> None:
    with Server(f"interface_app:{name}", allow=["Traceback"]) as server:
        said = server.ask("/").json()
        assert said["interface"] == interface
        assert said["asgi"]["version"] == {"asgi3": "3.0", "asgi2": "2.0"}[interface]
        assert "spec_version" in said["asgi"]


@pytest.mark.parametrize("option", ["asgi2", "auto"])
def test_an_asgi2_application_reads_answers_and_may_lack_a_lifespan(loop: str, option: str) -> None:
    with Server("interface_app:Asgi2", "--loop", loop, "--interface", option) as server:
        assert server.ask("/echo", method="POST", body=BODY).body == BODY
        assert "ASGI 'lifespan' protocol appears unsupported." in server.stderr


def test_an_asgi2_application_may_have_a_lifespan(loop: str) -> None:
    with Server("interface_app:Asgi2WithLifespan", "--loop", loop) as server:
        assert server.ask("/").json() == ["lifespan.startup"]


def test_an_error_of_an_asgi2_application_is_a_500_and_a_traceback_of_its_own(loop: str) -> None:
    with Server("interface_app:Asgi2", "--loop", loop, allow=["Traceback"]) as server:
        assert server.ask("/error").status == 500
        server.wait_line("RuntimeError: the ASGI 2 application failed")
        assert UVICORN or "interface.py" not in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn calls it with the scope, for each request")
def test_a_wsgi_application_that_nobody_called_one_is_refused_with_advice() -> None:
    with Server("interface_app:wsgi", ready=False) as server:
        assert server.wait_exit() == 3
        assert "interface_app:wsgi takes two arguments, as a WSGI application does" in server.stderr
        assert "--interface wsgi" in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn calls it in vain, for each request")
@pytest.mark.parametrize("name", ["asgi3", "asgi3_in_a_plain_function"])
def test_an_asgi_application_that_is_called_wsgi_is_refused_with_advice(name: str) -> None:
    with Server(f"interface_app:{name}", "--interface", "wsgi", ready=False) as server:
        assert server.wait_exit() == 3
        assert f"interface_app:{name} is an ASGI application" in server.stderr
        assert "leave --interface wsgi out" in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn has a copy of its own")
def test_without_a2wsgi_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "a2wsgi.py").write_text("raise ImportError('not here')\n")
    path = {"PYTHONPATH": str(tmp_path)}
    with Server("interface_app:wsgi", "--interface", "wsgi", ready=False, env=path) as server:
        assert server.wait_exit() == 3
        assert "pip install 'bridgehead[wsgi]'" in server.stderr


@pytest.fixture(scope="module")
def wsgi() -> Iterator[Server]:
    with Server("interface_app:wsgi", "--interface", "wsgi", allow=["Traceback"]) as server:
        yield server


def test_wsgi_is_given_the_request(wsgi: Server) -> None:
    headers = [("X-Twice", "a"), ("X-Twice", "b"), ("Content-Type", "text/x")]
    with wsgi.connect() as client:
        client.send(request("/environ?q=1", method="POST", headers=headers, body=b"x"))
        environ = client.read_response().json()
    assert environ == {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/environ",
        "QUERY_STRING": "q=1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(wsgi.port),
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "text/x",
        "HTTP_X_TWICE": "a,b",
        "wsgi.url_scheme": "http",
    }


def test_a_root_path_is_the_script_name(loop: str) -> None:
    options = ("--interface", "wsgi", "--root-path", "/mounted", "--loop", loop)
    with Server("interface_app:wsgi", *options) as server:
        environ = server.ask("/environ").json()
        assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == ("/mounted", "/environ")


def test_a_wsgi_body_is_read_in_one_go_and_by_lines(wsgi: Server) -> None:
    assert wsgi.ask("/echo", method="POST", body=BODY).body == BODY
    lines = wsgi.ask("/lines", method="POST", body=b"one\nthree\n" * 3).body
    assert lines.rstrip(b"0,") == b"4,6,4,6,4,6"


def test_a_wsgi_stream_leaves_whole_and_is_closed(wsgi: Server) -> None:
    assert wsgi.ask("/stream").body == b"".join(b"chunk %d\n" % number for number in range(1000))
    assert int(wsgi.ask("/closed").body) >= 1


def test_clients_that_leave_a_wsgi_stream_cost_no_thread(loop: str) -> None:
    with Server("interface_app:wsgi", "--interface", "wsgi", "--loop", loop) as server:
        for number in range(1, 13):
            with server.connect() as client:
                client.send(request("/endless"))
                client.read_head()
            server.wait_line("app: endless closed", count=number)
        assert server.ask("/environ").status == 200


def test_a_wsgi_stream_that_is_cancelled_at_the_stop_ends(loop: str) -> None:
    options = ("--interface", "wsgi", "--loop", loop, "--timeout-graceful-shutdown", "0.5")
    with Server("interface_app:wsgi", *options) as server:
        client = server.connect()
        client.send(request("/endless"))
        client.read_head()
        server.stop()
        assert "app: endless closed" in server.stderr


def test_a_wsgi_answer_may_be_empty(wsgi: Server) -> None:
    assert wsgi.ask("/empty").status == 204
    assert wsgi.ask("/nowhere").status == 404


def test_an_error_of_a_wsgi_application_is_a_500(wsgi: Server) -> None:
    assert wsgi.ask("/error").status == 500
    wsgi.wait_line("RuntimeError: the WSGI application failed")


def test_a_wsgi_application_that_fails_in_the_middle_breaks_the_answer_off(wsgi: Server) -> None:
    with wsgi.connect() as client:
        client.send(request("/late-error"))
        client.read_head()
        rest = client.read_to_any_end()
    assert len(rest) < 1000
    wsgi.wait_line("RuntimeError: the WSGI application failed in the middle")
    assert wsgi.ask("/environ").status == 200


@pytest.mark.skipif(UVICORN, reason="uvicorn's words are ASGI's")
@pytest.mark.parametrize(
    ("path", "before"),
    [("/never-started", "gave a piece of its body"), ("/never-started-nor-said", "ended its answer")],
)
def test_a_wsgi_application_that_never_starts_is_told_so_in_its_own_words(path: str, before: str) -> None:
    with Server("interface_app:wsgi", "--interface", "wsgi", allow=["Traceback"]) as server:
        assert server.ask(path).status == 500
        line = server.wait_line("RuntimeError: ")
        assert f"the WSGI application {before} before it called start_response(status, headers)" in line
        assert "http.response" not in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn serves what cannot answer")
@pytest.mark.parametrize(
    ("target", "takes"), [("odd:Nothing", "()"), ("odd:Four", "(a, b, c, d)"), ("odd:make()", "()")]
)
def test_what_can_be_called_as_no_application_is_refused(target: str, takes: str, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "class Nothing: pass\n\n"
        "class Four:\n    def __init__(self, a, b, c, d): pass\n\n"
        "def make(): return lambda: 1\n"
    )
    with Server(target, ready=False, cwd=tmp_path) as server:
        assert server.wait_exit() == 3
        assert f"{target} is called with {takes}, which no ASGI or WSGI application is" in server.stderr
