"""Start and stop under traffic, again and again."""

from __future__ import annotations

import threading
from signal import SIGINT, SIGTERM

import pytest
from harness import UVICORN, Client, ClosedError, Server, handshake, request
from harness.websocket import TEXT, frame


def cycle(loop: str, number: int) -> None:
    """One server, with requests of several kinds under way when it is told to end."""
    stop = threading.Event()

    def hammer(target: str) -> None:
        while not stop.is_set():
            try:
                with Client(("127.0.0.1", server.port)) as client:
                    for _ in range(10):
                        client.send(request(target))
                        client.read_response()
            except (OSError, ClosedError):
                continue

    def talk() -> None:
        while not stop.is_set():
            try:
                with Client(("127.0.0.1", server.port)) as client:
                    client.send(handshake("/talk"))
                    # A server that stops may refuse it; then it says goodbye in the midst of this.
                    while client.read_exactly(1) and not stop.is_set():
                        client.send(frame(TEXT, b"hello"))
            except (OSError, ClosedError):
                continue

    def look(port: int) -> None:
        while not stop.is_set():
            try:
                with Client(("127.0.0.1", port)) as client:
                    for _ in range(10):
                        client.send(request("/metrics"))
                        client.read_response()
            except (OSError, ClosedError):
                continue

    targets = ["/hello", "/sleep?name=x&seconds=0.01", "/stream?pause=0.001", "/background"]
    options = ["--loop", loop, "--timeout-graceful-shutdown", "1"]
    options += [] if UVICORN else ["--admin", "127.0.0.1:0"]
    with Server("lifecycle_app:app", *options) as server:
        hammers = [threading.Thread(target=hammer, args=(target,)) for target in targets]
        hammers += [threading.Thread(target=talk) for _ in range(2)]
        if not UVICORN:
            port = server.wait_line("Operators are answered on ").rpartition(":")[2]
            hammers.append(threading.Thread(target=look, args=(int(port),)))
        for thread in hammers:
            thread.start()
        try:
            server.wait_line("/hello", stream="stdout", count=20)
            server.stop(SIGINT if number % 2 else SIGTERM)
        finally:
            stop.set()
            for thread in hammers:
                thread.join(20)
        assert "app: shutdown" in server.stderr


@pytest.mark.timeout(120)
def test_cycles_under_traffic_end_well(loop: str) -> None:
    for number in range(4):
        cycle(loop, number)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_cycles_under_traffic_end_well(loop: str) -> None:
    for number in range(200):
        cycle(loop, number)


@pytest.mark.timeout(120)
def test_a_signal_at_any_moment_of_the_start_ends_the_server(loop: str) -> None:
    """As soon as a line of the start-up is out, whatever is not ready yet."""
    for line in ("Started server process", "Waiting for application", "app: startup", "startup complete"):
        for number in (SIGTERM, SIGINT):
            with Server("lifecycle_app:app", "--loop", loop, ready=False) as server:
                server.wait_line(line, timeout=30)
                server.signal(number)
                server.wait_exit()
                assert "panicked" not in server.stderr
                assert "Fatal Python error" not in server.stderr
                assert "destroyed" not in server.stderr
