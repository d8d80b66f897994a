"""What a server says and does before it serves, and the lifespan's first half."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from signal import Signals

import pytest
from harness import UVICORN, Server


def test_startup_says_what_people_know(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        said = server.stderr
        port = server.port
        pid = server.pid
    lines = [
        f"INFO:     Started server process [{pid}]",
        "INFO:     Waiting for application startup.",
        "app: startup",
        "INFO:     Application startup complete.",
        rf"INFO:     \w+ running on http://127\.0\.0\.1:{port} \(Press CTRL\+C to quit\)",
    ]
    assert re.search(
        r"\n(.*\n)*?".join(re.escape(line) if "\\" not in line else line for line in lines), said
    ), said


def test_nothing_is_accepted_before_startup_is_complete(loop: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = listener.getsockname()
        options = ["--loop", loop, "--fd", str(listener.fileno())]
        with (
            Server(
                "lifecycle_app:starts_slowly", *options, pass_fds=[listener.fileno()], ready=False
            ) as server,
            socket.create_connection(address, 20) as early,
        ):
            # It waits in the backlog, and is answered once the application is ready.
            early.sendall(b"GET /hello HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            assert early.makefile("rb").read().endswith(b"hello")
            # Its lines are read by a thread of the test's: the answer may overtake them.
            server.wait_line("app: startup")
            server.wait_ready()


def test_a_quiet_log_level_leaves_only_what_matters() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = listener.getsockname()
        options = ["--log-level", "warning", "--fd", str(listener.fileno())]
        with Server("lifecycle_app:quiet", *options, pass_fds=[listener.fileno()], ready=False) as server:
            with socket.create_connection(address, 20) as client:
                client.sendall(b"GET /hello HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
                assert client.makefile("rb").read().endswith(b"hello")
            server.stop()
            assert server.stderr == ""
            assert server.stdout == ""


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_the_lifespan_runs_on_the_requests_loop_and_hands_its_state_over(loop: str, mode: str) -> None:
    with Server("lifecycle_app:shows_lifespan", "--loop", loop, "--lifespan", mode) as server:
        line = server.wait_line("app: scope")
        assert server.ask("/").json() == {"seen": True}
    assert "'type': 'lifespan'" in line
    assert "'version': '3.0'" in line
    assert "'spec_version': '2.0'" in line
    assert "'state': {}" in line


def test_lifespan_off_never_calls_it(loop: str) -> None:
    with Server("lifecycle_app:shows_lifespan", "--loop", loop, "--lifespan", "off") as server:
        server.ask("/")
        server.stop()
        assert "app: scope" not in server.stderr
        assert "application startup" not in server.stderr


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_startup_that_failed_ends_with_3_and_its_message(loop: str, mode: str) -> None:
    with Server("lifecycle_app:fails_at_startup", "--loop", loop, "--lifespan", mode, ready=False) as server:
        assert server.wait_exit() == 3
        assert "the database is not there" in server.stderr
        if not UVICORN:  # which has the terminal obey what it says
            assert "\nERROR:    the database is not there\\x1b[2J\nérr\n" in server.stderr
        assert "running on" not in server.stderr
        assert "Traceback" not in server.stderr


def test_a_startup_that_failed_without_a_message_ends_with_3(loop: str) -> None:
    with Server("lifecycle_app:fails_without_a_message", "--loop", loop, ready=False) as server:
        assert server.wait_exit() == 3
        assert "startup failed" in server.stderr


@pytest.mark.parametrize("target", ["without_lifespan", "raises_at_startup", "returns_from_lifespan"])
def test_an_application_without_lifespan_is_served_after_one_info_line(loop: str, target: str) -> None:
    with Server(f"lifecycle_app:{target}", "--loop", loop) as server:
        assert server.ask("/hello").body == b"hello"
        server.stop()
        if target != "returns_from_lifespan":
            lines = [line for line in server.stderr.splitlines() if "lifespan" in line]
            assert len(lines) == 1, server.stderr
            assert lines[0].startswith("INFO:")


@pytest.mark.parametrize("target", ["without_lifespan", "raises_at_startup"])
def test_lifespan_on_makes_it_mandatory(loop: str, target: str) -> None:
    with Server(f"lifecycle_app:{target}", "--loop", loop, "--lifespan", "on", ready=False) as server:
        assert server.wait_exit() == 3
        assert "running on" not in server.stderr
        assert "raised at startup" in server.stderr or "no lifespan here" in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn shows its own frames")
@pytest.mark.parametrize("mode", ["auto", "on"])
@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("exits_at_startup", "the application exited with code 4 during startup"),
        ("exits_with_words_at_startup", "the application exited saying no database during startup"),
    ],
)
def test_an_application_that_exits_at_startup_ends_with_3(
    loop: str, mode: str, target: str, sentence: str
) -> None:
    with Server(f"lifecycle_app:{target}", "--loop", loop, "--lifespan", mode, ready=False) as server:
        assert server.wait_exit() == 3
        assert f"bridgehead: error: {sentence}\n  hint: " in server.stderr
        assert server.stderr.count("File ") == 1, "the application's frame, and none of ours"
        assert "never retrieved" not in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn shows its own frames")
def test_an_interrupt_raised_at_startup_ends_quietly(loop: str) -> None:
    with Server("lifecycle_app:interrupts_at_startup", "--loop", loop, ready=False) as server:
        assert server.wait_exit() == 130
        assert server.stderr.splitlines()[1:] == ["INFO:     Waiting for application startup."]


@pytest.mark.skipif(UVICORN, reason="uvicorn has no such option")
@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_startup_that_takes_too_long_ends_with_3(loop: str, mode: str) -> None:
    options = ["--loop", loop, "--lifespan", mode, "--timeout-lifespan-startup", "0.5"]
    with Server("lifecycle_app:hangs_at_startup", *options, ready=False) as server:
        assert server.wait_exit() == 3
        assert "startup" in server.stderr.replace("app: startup hangs", "").replace(
            "app: startup finally", ""
        )
        assert "0.5" in server.stderr
        assert "running on" not in server.stderr


BLOCKS = """
import os
import time


async def app(scope, receive, send):
    await receive()
    os.write(2, b"app: blocks\\n")
    time.sleep(600)
"""


@pytest.mark.skipif(UVICORN, reason="uvicorn waits for ever")
def test_a_startup_that_blocks_the_loop_ends_with_3_as_well(loop: str, tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(BLOCKS)
    options = ["--loop", loop, "--timeout-lifespan-startup", "0.5"]
    with Server("blocks:app", *options, cwd=tmp_path, ready=False, allow=["did not start within"]) as server:
        assert server.wait_exit() == 3
        assert (
            "The application did not start within 0.5 s: the task 'bridgehead-lifespan' blocks"
            in server.stderr
        )
        assert "in app() at blocks.py:9" in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn waits for ever")
def test_a_signal_ends_a_startup_that_blocks_the_loop_before_the_time_for_requests(
    loop: str, tmp_path: Path
) -> None:
    (tmp_path / "blocks.py").write_text(BLOCKS)
    with Server("blocks:app", "--loop", loop, cwd=tmp_path, ready=False, allow=["did not stop"]) as server:
        server.wait_line("app: blocks", timeout=30)
        server.signal(Signals.SIGTERM)
        assert server.wait_exit() == 1
        assert "did not stop within 5 s of the signal: " in server.stderr


def test_a_lifespan_that_ends_after_startup_is_served(loop: str) -> None:
    with Server("lifecycle_app:ends_after_startup", "--loop", loop) as server:
        assert server.ask("/hello").body == b"hello"


@pytest.mark.skipif(UVICORN, reason="uvicorn says that it is unsupported")
def test_a_lifespan_that_fails_while_it_serves_is_told_of_at_once(loop: str) -> None:
    target = "lifecycle_app:raises_while_serving"
    with Server(target, "--loop", loop, allow=["Traceback"]) as server:
        server.wait_line("lifespan failed while it served")
        server.wait_line("RuntimeError: raised while serving")
        assert server.ask("/hello").body == b"hello"
        server.stop()
    assert server.stderr.count("Traceback (most recent call last)") == 1
    assert "application shutdown" not in server.stderr.lower()


@pytest.mark.skipif(UVICORN, reason="uvicorn asserts with other words")
def test_a_misused_lifespan_message_raises_at_its_own_send(loop: str) -> None:
    with Server("lifecycle_app:misuses_lifespan", "--loop", loop) as server:
        assert server.ask("/hello").body == b"hello"
        assert server.stderr.count("app: misuse") == 7
        for sentence in (
            "`http.response.start` came, which belongs to another type of scope",
            "a message of unknown type `nonsense` came",
            "a message came as NoneType; a dict was due",
            "a message came without `type`",
            "`type` of `message` came as int; a str was due",
            "`message` of `lifespan.startup.failed` came as int; a str was due",
            "`lifespan.startup.complete` came out of place",
        ):
            assert sentence in server.stderr


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_during_startup_ends_the_server(loop: str, number: str) -> None:
    import signal

    with Server("lifecycle_app:hangs_at_startup", "--loop", loop, ready=False) as server:
        server.wait_line("app: startup hangs")
        server.signal(getattr(signal, number))
        server.wait_exit()
        assert "panicked" not in server.stderr
        assert "running on" not in server.stderr


@pytest.mark.parametrize("option", [[], ["--host", "0.0.0.0"], ["--host", "localhost"]])
def test_a_second_server_never_shares_a_port(option: list[str]) -> None:
    with (
        Server("lifecycle_app:app", *option) as first,
        Server("lifecycle_app:app", *option, "--port", str(first.port), ready=False) as second,
    ):
        assert second.wait_exit() in ((1, 3) if UVICORN else (3,))
        assert str(first.port) in second.stderr
        assert "running on" not in second.stderr
        assert first.ask("/hello").body == b"hello"


@pytest.mark.skipif(UVICORN, reason="uvicorn has no word on it")
def test_a_python_whose_lock_is_off_is_refused(tmp_path: Path) -> None:
    """As a free-threaded one says it with `-X gil=0`; nobody has one here."""
    (tmp_path / "unlocked.py").write_text(
        "import sys\n\nsys._is_gil_enabled = lambda: False\n\nasync def app(scope, receive, send): ...\n"
    )
    for options in ((), ("--check",)):
        with Server("unlocked:app", *options, cwd=tmp_path, ready=False) as server:
            assert server.wait_exit() == 3
            assert "error: Python runs without its lock (GIL)" in server.stderr
            assert "hint: leave out `-X gil=0`" in server.stderr
