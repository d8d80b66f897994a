"""Answers from open files and pipes: what nobody writes to holds nobody up."""

from __future__ import annotations

import itertools
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import UVICORN, Client, Server, request
from harness.http2 import Http2Client

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no extensions")

names = (f"file-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("files_app:app", "--loop", loop, "--pathsend", allow=["Traceback"]) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "digits"
    path.write_bytes(b"0123456789abcdefghij")
    return path


# --- pipes that nobody writes to


def test_a_pipe_that_was_given_up_on_does_not_hold_the_stop(loop: str) -> None:
    with Server("files_app:app", "--loop", loop) as server:
        assert server.ask("/impatient").body == b"nothing came"
        server.stop(timeout=8)
        assert "app: lifespan over" in server.stderr


def test_a_pipe_that_is_waited_for_is_cancelled_at_the_stop(loop: str) -> None:
    with Server("files_app:app", "--loop", loop, "--timeout-graceful-shutdown", "2") as server:
        with server.connect() as client:
            client.send(request("/patient?name=stopped"))
            client.read_head()
            server.stop(timeout=8)
        assert "Cancelled 1 request that ran: " in server.stderr
        assert "app: lifespan over" in server.stderr


@pytest.mark.parametrize("leave", [Client.close, Client.reset, Client.half_close])
def test_a_client_that_leaves_ends_the_wait_for_a_pipe(server: Server, leave: object) -> None:
    name = next(names)
    with server.connect() as client:
        client.send(request(f"/patient?name={name}"))
        client.read_head()
        assert callable(leave)
        leave(client)
        assert server.note(name) == "ClientDisconnected"
    assert "ClientDisconnected" not in server.stderr


def test_hundreds_of_pipes_that_are_waited_for_leave_files_their_threads(file: Path) -> None:
    def allow_many_files() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))

    with Server("files_app:app", "--pathsend", preexec_fn=allow_many_files) as server:
        clients = [server.connect() for _ in range(520)]
        for client in clients:
            client.send(request("/patient?name=many"))
        for client in clients:
            client.read_head()
        assert server.ask(f"/uncaught?{file}").body == file.read_bytes()
        for client in clients:
            client.close()
        assert [server.note("many") for _ in clients] == ["ClientDisconnected"] * 520


def test_a_pipe_that_is_not_to_be_blocked_on_is_sent_to_its_end(server: Server) -> None:
    assert server.ask("/non-blocking").body == b"one two three"


# --- where a file is sent from


def test_pythons_own_position_is_where_a_file_is_sent_from(server: Server, file: Path) -> None:
    """Python reads ahead, so the descriptor is at the end long before."""
    assert server.ask(f"/read-before?{file}").body == b"3456789abc|012|defghij"


def test_a_file_may_be_closed_once_send_was_called(server: Server, file: Path) -> None:
    assert server.ask(f"/closed-before?{file}").body == file.read_bytes()


with_and_without_a_body = pytest.mark.parametrize(("method", "status", "body"), [
    ("GET", 200, b"0123012345674567"),
    ("HEAD", 200, b""),
    ("GET", 304, b""),
])  # fmt: skip


@with_and_without_a_body
def test_who_sends_a_file_by_its_position_comes_to_its_end_also_where_no_body_goes_out(
    server: Server, file: Path, method: str, status: int, body: bytes
) -> None:
    with server.connect() as client:
        response = client.ask(f"/in-parts?{file}&{status}", method=method)
        assert (response.status, response.body[:16]) == (status, body)
        assert server.note("in-parts") == 5


@with_and_without_a_body
def test_over_http2_too_a_file_goes_out_only_where_there_is_a_body(
    server: Server, file: Path, method: str, status: int, body: bytes
) -> None:
    with Http2Client(server.port) as client:
        answer = client.ask(f"/in-parts?{file}&{status}", method=method)
        assert (answer.status, answer.body[:16]) == (status, body)
        assert server.note("in-parts") == 5
        assert client.ask(f"/closed-before?{file}").body == file.read_bytes()


def test_who_sends_more_of_a_file_than_was_declared_comes_to_its_end_or_hears_of_the_cut(
    server: Server, file: Path
) -> None:
    with server.connect() as client:
        assert client.ask(f"/in-parts?{file}&200&2").body == b"01"
        assert server.note("in-parts") in (5, "ClientDisconnected")


# --- what cannot be had


def test_a_path_that_comes_turns_of_the_loop_after_the_start_still_gives_the_length(
    server: Server, file: Path
) -> None:
    response = server.ask(f"/or-404?{file}")
    assert (response.framing, response.body) == ("length", file.read_bytes())


@pytest.mark.parametrize("late", ["", "&late"])
def test_a_missing_file_may_be_answered_with_404(server: Server, tmp_path: Path, late: str) -> None:
    path = f"{tmp_path}/missing"
    with server.connect() as client:
        response = client.ask(f"/or-404?{path}{late}")
        assert (response.status, response.framing, response.header("x-file")) == (404, "length", None)
        assert response.body == f"FileNotFoundError {path!r}".encode()
        client.assert_open()


def test_a_missing_file_that_nobody_looks_after_is_a_500(server: Server, tmp_path: Path) -> None:
    assert server.ask(f"/uncaught?{tmp_path}/missing").status == 500
    server.wait_line("FileNotFoundError")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no /proc")
def test_what_the_kernel_makes_up_is_sent_though_it_has_no_size(server: Server) -> None:
    response = server.ask("/uncaught?/proc/self/status")
    assert response.framing == "chunked"
    assert response.body.startswith(b"Name:")
    assert server.ask("/read-before?/proc/self/status").body.startswith(b"e:")
