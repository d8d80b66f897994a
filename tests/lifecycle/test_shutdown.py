"""How a server ends: nothing lost, nothing waited for that need not be, nothing hung."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from signal import SIGCONT, SIGINT, SIGSTOP, SIGTERM, Signals
from socket import MSG_DONTWAIT, MSG_PEEK

import pytest
from harness import APPS, UVICORN, Client, ClosedError, Server, request
from harness.server import COMPLAINTS, STOP_SECONDS

from bridgehead.pytest_plugin import MakeClient

SIGNALS = [SIGTERM, SIGINT]


def wait_for_stop(idle: Client) -> None:
    """The server has taken the signal: it closed a connection that was idle."""
    idle.assert_closed()


def is_closed(client: Client) -> bool:
    """Whether the server has said so, as a careful client asks before it sends."""
    with suppress(BlockingIOError):
        return client.socket.recv(1, MSG_PEEK | MSG_DONTWAIT) == b""
    return False


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_an_idle_server_with_0_after_the_lifespans_shutdown(loop: str, number: Signals) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        assert server.ask("/hello").status == 200
        server.stop(number)
        assert "app: shutdown" in server.stderr
        assert "KeyboardInterrupt" not in server.stderr
        assert "CancelledError" not in server.stderr


def test_a_task_factory_that_refuses_is_the_applications_own_matter(loop: str) -> None:
    with Server("lifecycle_app:sets_a_task_factory_that_refuses", "--loop", loop) as server:
        assert server.ask("/").body == b"hello"
        server.stop()
        assert "app: shutdown" in server.stderr
        assert "no tasks here" not in server.stderr


def test_a_server_that_never_had_a_request_ends_as_well(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        server.stop()
        assert "app: shutdown" in server.stderr


def test_idle_connections_are_closed_at_once(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        clients = [server.connect() for _ in range(20)]
        for client in clients:
            client.assert_open()
        server.stop(timeout=8)
        for client in clients:
            client.assert_closed()


def test_connections_that_never_said_anything_do_not_hold_the_exit(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        clients = [server.connect() for _ in range(5)]
        server.ask("/hello")
        server.stop(timeout=8)
        for client in clients:
            client.assert_closed()


def test_half_a_head_does_not_hold_the_exit(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop, "--timeout-graceful-shutdown", "2") as server:
        client = server.connect()
        client.send(b"GET /hello HTTP/1.1\r\nHost: te")
        server.ask("/hello")
        server.stop()


def test_half_a_body_does_not_hold_the_exit(loop: str) -> None:
    with Server("wire_app:app", "--loop", loop, "--timeout-graceful-shutdown", "2") as server:
        client = server.connect()
        client.send(b"POST /collect?name=half HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345")
        server.note("half-began")
        server.stop()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_running_request_finishes(loop: str, number: Signals) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        client, idle = server.connect(), server.connect()
        idle.assert_open()
        client.send(request("/sleep?name=running&seconds=1"))
        server.wait_line("app: running began")
        server.signal(number)
        wait_for_stop(idle)
        response = client.read_response()
        assert (response.status, response.body) == (200, b"slept")
        assert response.closes
        client.assert_closed()
        server.assert_ended_well()
        said = server.stderr
    assert said.index("app: running finally") < said.index("app: shutdown")
    assert "app: running cancelled" not in said


def test_a_pipelined_request_behind_a_running_one_is_answered_or_never_run(loop: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    with Server("lifecycle_app:app", "--loop", loop, env={"LEDGER": str(ledger)}) as server:
        client = server.connect()
        client.send(request("/sleep?name=first&seconds=0.5") + request("/ledger?id=second"))
        server.wait_line("app: first began")
        server.signal(SIGTERM)
        assert client.read_response().body == b"slept"
        rest = client.read_to_any_end()
        server.assert_ended_well()
    assert rest.endswith(b"second") or (rest == b"" and not ledger.exists())


def test_what_waits_in_the_backlog_is_answered(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        server.ask("/hello")
        # A stopped process accepts nothing: what connects now waits, and SIGTERM waits with it.
        server.signal(SIGSTOP)
        clients = [server.connect() for _ in range(200)]
        for client in clients:
            client.send(request("/hello"))
        server.signal(SIGTERM)
        server.signal(SIGCONT)
        for client in clients:
            assert client.read_response().body == b"hello"
        server.assert_ended_well()


def test_nobody_new_is_accepted_while_a_request_finishes(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        client, idle = server.connect(), server.connect()
        idle.assert_open()
        client.send(request("/sleep?name=last&seconds=1.5"))
        server.wait_line("app: last began")
        server.signal(SIGTERM)
        wait_for_stop(idle)
        refused = False
        while not refused and not client.is_readable():
            try:
                with Client(("127.0.0.1", server.port)) as late:
                    late.try_send(request("/hello"))
                    late.read_to_any_end()
            except OSError:
                refused = True
        assert refused
        assert client.read_response().body == b"slept"
        server.assert_ended_well()


def test_work_after_the_answer_finishes(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        assert server.ask("/background").body == b"answered"
        server.stop()
        said = server.stderr
    assert said.index("app: background done") < said.index("app: shutdown")


def test_the_deadline_cancels_handlers_and_runs_their_finally(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop, "--timeout-graceful-shutdown", "2") as server:
        clients = [server.connect() for _ in range(3)]
        for number, client in enumerate(clients):
            client.send(request(f"/sleep?name=long-{number}&seconds=600"))
            server.wait_line(f"app: long-{number} began")
        server.stop()
        said = server.stderr
        for client in clients:
            assert not client.read_to_any_end().startswith(b"HTTP/1.1 200")
    for number in range(3):
        assert f"app: long-{number} cancelled" in said
        assert said.index(f"app: long-{number} finally") < said.index("app: shutdown")


def test_the_deadline_ends_an_endless_stream_but_not_cleanly(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop, "--timeout-graceful-shutdown", "2") as server:
        client = server.connect()
        client.send(request("/stream"))
        client.read_until(b"ssss")
        server.signal(SIGTERM)
        rest = client.read_to_any_end()
        server.assert_ended_well()
        said = server.stderr
    assert not rest.endswith(b"0\r\n\r\n")
    assert said.index("app: stream finally") < said.index("app: shutdown")


def test_a_handler_that_refuses_to_be_cancelled_does_not_hold_the_exit(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop, "--timeout-graceful-shutdown", "2") as server:
        client = server.connect()
        client.send(request("/stubborn"))
        server.wait_line("app: stubborn began")
        server.signal(SIGTERM)
        server.wait_exit()
        assert "panicked" not in server.stderr


@pytest.mark.runtimes
@pytest.mark.skipif(UVICORN, reason="uvicorn waits for ever")
@pytest.mark.parametrize("whole", [0, 1, 3])
def test_a_stop_takes_no_longer_than_it_is_given_whatever_swallows_cancellations(
    loop: str, whole: int
) -> None:
    with Server(
        "lifecycle_app:stops_slowly",
        "--loop",
        loop,
        "--timeout-graceful-shutdown",
        str(whole),
        allow=COMPLAINTS,
    ) as server:
        client = server.connect()
        client.send(request("/stubborn"))
        server.wait_line("app: stubborn began")
        server.signal(SIGTERM)
        # Unscaled the parts would be 7 s beside the requests', and the last steps two more.
        assert server.wait_exit(7) == 0
        assert "app: shutdown hangs" in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn has no such time")
def test_what_requests_do_not_need_of_a_short_stop_is_the_lifespans(loop: str) -> None:
    with Server(
        "lifecycle_app:ends_in_a_while", "--loop", loop, "--timeout-graceful-shutdown", "2"
    ) as server:
        server.ask("/hello")
        server.stop()
        assert "app: shutdown took a while" in server.stderr


def test_tasks_left_behind_by_handlers_are_cancelled_and_nothing_is_destroyed(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        assert server.ask("/spawn").body == b"spawned"
        server.stop()
        assert "app: left task finally" in server.stderr


@pytest.mark.parametrize("size", [10, 65_536])
def test_a_client_that_never_reads_does_not_hold_the_exit(
    loop: str, never_reading_client: MakeClient, size: int
) -> None:
    with Server("lifecycle_app:app", "--loop", loop, "--timeout-graceful-shutdown", "2") as server:
        client = never_reading_client(server, f"/stream?size={size}&pause=0")
        assert client.wait_for_bytes()
        for _ in range(5):
            server.ask("/hello")
        server.stop()
        assert "app: stream finally" in server.stderr


def test_a_complete_answer_that_is_not_read_does_not_hold_the_exit(
    loop: str, never_reading_client: MakeClient
) -> None:
    with Server("wire_app:app", "--loop", loop, "--timeout-graceful-shutdown", "2") as server:
        client = never_reading_client(server, "/chunks?count=1&size=30000000")
        assert client.wait_for_bytes()
        server.ask("/hello")
        server.stop()


def test_a_blocked_loop_is_waited_for_within_the_deadline(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        client = server.connect()
        client.send(request("/block?seconds=1"))
        server.wait_line("app: block began")
        server.signal(SIGTERM)
        assert client.read_response().body == b"blocked"
        server.assert_ended_well()
        assert "app: shutdown" in server.stderr


@pytest.mark.runtimes
@pytest.mark.skipif(UVICORN, reason="uvicorn waits for ever")
@pytest.mark.parametrize("how", ["block", "spin"])
def test_a_loop_that_is_blocked_for_ever_does_not_hang_the_exit(loop: str, how: str) -> None:
    stop_while_blocked(how, "--loop", loop, "--timeout-graceful-shutdown", "2")


@pytest.mark.soak
@pytest.mark.skipif(UVICORN, reason="uvicorn waits for ever")
@pytest.mark.parametrize("how", ["block", "spin"])
def test_of_fifty_stops_while_the_loop_is_blocked_none_hangs(how: str) -> None:
    for _ in range(25):
        stop_while_blocked(how, "--timeout-graceful-shutdown", "1")


def stop_while_blocked(how: str, *options: str) -> None:
    with Server("lifecycle_app:app", *options) as server:
        client = server.connect()
        client.send(request(f"/{how}?seconds=600"))
        server.wait_line(f"app: {how} began")
        server.signal(SIGTERM)
        server.wait_exit()
        assert "panicked" not in server.stderr


@pytest.mark.skipif(UVICORN or sys.platform != "linux", reason="needs /proc, and our last words")
def test_a_stderr_that_nobody_reads_does_not_hold_the_exit() -> None:
    readable, writable = os.pipe()
    # Another opening of the same pipe: the server's own stays one that waits.
    ours = os.open(f"/proc/self/fd/{writable}", os.O_WRONLY | os.O_NONBLOCK)
    words = ["lifecycle_app:app", "--port", "0", "--timeout-graceful-shutdown", "1"]
    command = [sys.executable, "-m", "bridgehead", *words]
    with subprocess.Popen(command, cwd=APPS, stderr=writable) as process, os.fdopen(readable, "rb") as lines:
        assert any(b"running on" in line for line in lines)
        for piece in (b"x" * 4096, b"x"):
            with suppress(BlockingIOError):
                while True:
                    os.write(ours, piece)
        os.close(ours)
        os.close(writable)
        process.terminate()
        try:
            # The loop's thread waits to say that it stops; the control thread ends the process without it.
            assert process.wait(STOP_SECONDS) == 1
        finally:
            process.kill()


@pytest.mark.parametrize("second", SIGNALS)
@pytest.mark.parametrize("first", SIGNALS)
def test_a_second_signal_ends_now(loop: str, first: Signals, second: Signals) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        client, idle = server.connect(), server.connect()
        idle.assert_open()
        client.send(request("/sleep?name=endless&seconds=600"))
        server.wait_line("app: endless began")
        server.signal(first)
        wait_for_stop(idle)
        server.signal(second)
        # Far below the 25 seconds that a graceful end may take.
        server.wait_exit(8)
        assert "panicked" not in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn has no such option")
def test_a_shutdown_that_takes_too_long_is_cut(loop: str) -> None:
    with Server(
        "lifecycle_app:hangs_at_shutdown", "--loop", loop, "--timeout-lifespan-shutdown", "0.5"
    ) as server:
        server.ask("/hello")
        server.signal(SIGTERM)
        assert server.wait_exit(8) >= 0
        assert "app: shutdown hangs" in server.stderr
        assert "panicked" not in server.stderr
        assert "shutdown" in server.stderr.replace("app: shutdown hangs", "")


@pytest.mark.parametrize(
    ("target", "says"),
    [("fails_at_shutdown", "could not flush"), ("raises_at_shutdown", "raised at shutdown")],
)
def test_a_shutdown_that_fails_is_logged_and_the_exit_code_says_so(loop: str, target: str, says: str) -> None:
    with Server(f"lifecycle_app:{target}", "--loop", loop) as server:
        server.ask("/hello")
        server.signal(SIGTERM)
        assert server.wait_exit() == (-SIGTERM if UVICORN else 1)
        assert says in server.stderr
        assert "panicked" not in server.stderr


@pytest.mark.skipif(UVICORN, reason="uvicorn shows its own frames")
@pytest.mark.parametrize(
    ("target", "line", "code"),
    [
        ("raises_at_shutdown", "RuntimeError: raised at shutdown", 1),
        ("exits_at_shutdown", "SystemExit: 4", 1),
        # It has said that all is well.
        ("raises_at_last", "RuntimeError: raised at last", 0),
    ],
)
def test_a_shutdown_that_raises_is_one_record_without_our_frames(
    loop: str, target: str, line: str, code: int
) -> None:
    with Server(f"lifecycle_app:{target}", "--loop", loop) as server:
        server.signal(SIGTERM)
        assert server.wait_exit() == code
        assert "panicked" not in server.stderr
    assert server.stderr.count("Traceback (most recent call last)") == 1
    assert line in server.stderr
    assert server.stderr.count("File ") == 1


@pytest.mark.parametrize("run", range(3))
def test_every_request_at_the_stop_is_answered_or_was_never_run(loop: str, tmp_path: Path, run: int) -> None:
    """The ledger decides: what the application ran, its client got whole. Who keeps asking is told."""
    ledger = tmp_path / "ledger"
    ledger.touch()
    answered: set[str] = set()
    torn: list[bytes] = []
    untold: list[str] = []

    def hammer(worker: int, keep: bool) -> None:
        number = 0
        client: Client | None = None
        while True:
            name = f"{run}-{worker}-{number}"
            number += 1
            try:
                if client and is_closed(client):  # for it was idle: this thread had no turn
                    client.close()
                    client = None
                client = client or Client(("127.0.0.1", server.port))
                client.send(request(f"/ledger?id={name}", headers=[] if keep else [("Connection", "close")]))
                response = client.read_response()
            except ClosedError as closed:
                if closed.data:
                    torn.append(closed.data)
                elif keep:
                    untold.append(name)
                break
            except OSError:
                break
            assert response.body.decode() == name
            answered.add(name)
            if response.closes:
                client.close()
                client = None
        if client:
            client.close()

    with Server("lifecycle_app:app", "--loop", loop, env={"LEDGER": str(ledger)}) as server:
        hammers = [threading.Thread(target=hammer, args=(worker, worker % 2 == 0)) for worker in range(8)]
        for thread in hammers:
            thread.start()
        server.wait_line("/ledger", stream="stdout", count=200)
        server.stop()
        for thread in hammers:
            thread.join(20)
    ran = ledger.read_text().split()
    assert torn == []
    assert untold == []
    assert len(ran) == len(set(ran)), "a request ran twice"
    assert set(ran) == answered


def test_the_port_is_free_after_the_end(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        port = server.port
        server.ask("/hello")
        server.stop()
        with pytest.raises(ConnectionRefusedError):
            Client(("127.0.0.1", port))


def test_no_descriptor_is_left_after_many_connections(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server:
        server.ask("/hello")
        before = server.open_files()
        for _ in range(100):
            server.ask("/hello")
        assert server.open_files() <= before + 3


def test_a_killed_parent_terminal_is_no_reason_to_hang(loop: str) -> None:
    """Its log has nowhere to go: stdout and stderr are closed pipes."""
    reading, writing = os.pipe()
    with Server("lifecycle_app:quiet", "--loop", loop, stdout=writing) as server:
        os.close(writing)
        os.close(reading)
        server.ask("/hello")
        server.stop()


@pytest.mark.parametrize("sent", [b"G", b"\r\n", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_half_of_a_first_head_does_not_hold_the_end(loop: str, sent: bytes) -> None:
    with Server("lifecycle_app:app", "--loop", loop) as server, server.connect() as client:
        client.send(sent)
        began = time.monotonic()
        server.stop()
        # Less than the requests' share of the stop, which is what it would wait for.
        assert time.monotonic() - began < 9
