"""Who is faster waits for who is slower, and nobody's memory pays for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from harness import UVICORN, Client, Server, request

MEBIBYTE = 1024 * 1024
ALLOWED = 32 * MEBIBYTE


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("wire_app:app", "--loop", loop) as server:
        # What the first request costs is not what an upload costs.
        with server.connect() as client:
            client.ask("/echo", method="POST", body=b"x" * MEBIBYTE)
        yield server


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_an_upload_nobody_reads_pauses_the_client_and_costs_bounded_memory(
    server: Server, chunked: bool
) -> None:
    name = f"upload-{chunked}"
    size = 64 * MEBIBYTE
    before = server.memory_peak()
    if chunked:
        block = b"100000\r\n" + b"u" * MEBIBYTE + b"\r\n"
        body, framing = block * 64 + b"0\r\n\r\n", "Transfer-Encoding: chunked"
    else:
        body, framing = b"u" * size, f"Content-Length: {size}"
    with server.connect() as client:
        client.send(f"POST /upload?name={name} HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n".encode())
        server.note(f"{name}-began")
        sent = client.send_until_paused(body)
        # The kernel may hold some ten megabytes on the way.
        assert sent < size - 8 * MEBIBYTE, "the client was not paused"
        assert server.memory_peak() - before < ALLOWED
        server.ring(name)
        client.send(memoryview(body)[sent:])
        response = client.read_response()
        assert response.json()["size"] == size
        client.assert_open()
    assert server.memory_peak() - before < ALLOWED


def test_a_stalled_reader_parks_send_and_costs_bounded_memory(server: Server) -> None:
    before = server.memory_peak()
    with server.connect(receive_buffer=16 * 1024) as client:
        client.send(request("/stalled?name=stalled&size=65536"))
        parked = server.note("stalled")
        assert parked < 16 * MEBIBYTE
        assert server.memory_peak() - before < ALLOWED
        response = client.read_response()
        assert len(response.body) == server.note("stalled-all")
        client.assert_open()


def test_a_stalled_reader_of_one_message_of_many_megabytes_gets_all_of_it(server: Server) -> None:
    with server.connect(receive_buffer=16 * 1024) as client:
        client.send(request(f"/chunks?count=1&size={16 * MEBIBYTE}"))
        server.ask("/hello")
        assert client.read_response().body == b"c" * 16 * MEBIBYTE


def test_twenty_stalled_readers_leave_the_server_answering(server: Server) -> None:
    before = server.memory_peak()
    clients = [server.connect(receive_buffer=16 * 1024) for _ in range(20)]
    for number, client in enumerate(clients):
        client.send(request(f"/stalled?name=crowd-{number}&size=65536"))
    for number in range(len(clients)):
        assert server.note(f"crowd-{number}") < 16 * MEBIBYTE
    assert server.ask("/hello").body == b"hello"
    assert server.memory_peak() - before < ALLOWED + 20 * MEBIBYTE
    for client in clients:
        client.reset()
    assert server.ask("/hello").body == b"hello"


def test_a_stalled_reader_that_leaves_frees_the_sender(server: Server) -> None:
    client = server.connect(receive_buffer=16 * 1024)
    client.send(request("/stalled?name=leaver&size=65536"))
    server.note("leaver")
    client.reset()
    with server.connect(receive_buffer=16 * 1024) as other:
        other.send(request("/stalled?name=stayer&size=65536"))
        server.note("stayer")
        assert len(other.read_response().body) == server.note("stayer-all")


def test_a_stream_comes_piece_by_piece(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/paced?name=pieces"))
        assert client.read_head()[1] == 200
        assert client.read_chunk() == b"first"
        assert not client.is_readable(0.1)
        server.ring("pieces")
        assert client.read_chunks() == [b"second"]
        client.assert_open()


@pytest.mark.parametrize("count", [10, 100])
def test_what_is_ready_together_leaves_in_few_segments(server: Server, count: int) -> None:
    with server.connect() as client:
        client.assert_open()
        before = client.data_segments_received()
        response = client.ask(f"/chunks?count={count}&size=10")
        assert response.body == b"c" * 10 * count
        # One when everything was ready; a few when the network ran beside the application.
        assert client.data_segments_received() - before <= max(4, count // 10)


def test_a_complete_answer_leaves_in_one_segment(server: Server) -> None:
    with server.connect() as client:
        client.assert_open()
        before = client.data_segments_received()
        for _ in range(10):
            client.assert_open()
        assert client.data_segments_received() - before == 10


def test_uploading_and_downloading_at_once_deadlocks_nobody(server: Server) -> None:
    body = bytes(range(256)) * 4096 * 8
    with server.connect() as client:
        writer = threading.Thread(target=client.send, args=(request("/echo", method="POST", body=body),))
        writer.start()
        assert client.read_response().body == body
        writer.join()


@pytest.mark.skipif(UVICORN, reason="uvicorn ends a failed 1.0 answer like a complete one")
def test_a_failed_answer_to_1_0_is_reset_since_its_end_would_look_clean(server_with_failures: Server) -> None:
    with server_with_failures.connect() as client:
        client.send(request("/fail?when=body&name=one-zero", version="1.0"))
        assert client.read_until(b"half of it")
        server_with_failures.ring("one-zero")
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)


@pytest.fixture(scope="module")
def server_with_failures(loop: str) -> Iterator[Server]:
    with Server("wire_app:app", "--loop", loop, allow=["Traceback"]) as server:
        yield server


@pytest.mark.parametrize("when", ["body", "return"])
@pytest.mark.parametrize("length", ["", "&length=yes"])
def test_an_answer_that_fails_in_its_body_never_ends_cleanly(
    server_with_failures: Server, when: str, length: str
) -> None:
    name = f"abort-{when}-{len(length)}"
    with server_with_failures.connect() as client:
        client.send(request(f"/fail?when={when}&name={name}{length}") + request("/hello"))
        head = client.read_until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        client.read_until(b"half of it")
        server_with_failures.ring(name)
        rest = client.read_to_any_end()
    assert b"0\r\n\r\n" not in rest
    assert b"hello" not in rest
    assert rest in (b"", b"\r\n")


def test_an_answer_that_fails_at_once_never_ends_cleanly(server_with_failures: Server) -> None:
    for _ in range(20):
        with server_with_failures.connect() as client:
            client.send(request("/fail?when=body"))
            answer = client.read_to_any_end()
        if answer and not answer.startswith(b"HTTP/1.1 500 "):
            assert not answer.endswith(b"0\r\n\r\n")
            assert b"content-length" not in answer.lower()


def test_a_started_answer_that_fails_before_its_body_is_a_500_or_nothing(
    server_with_failures: Server,
) -> None:
    with server_with_failures.connect() as client:
        client.send(request("/fail?when=started", headers=[("Connection", "close")]))
        answer = client.read_to_any_end()
    if b" 500 " not in answer.partition(b"\r\n")[0]:
        assert not answer.endswith(b"0\r\n\r\n")


def test_two_hundred_clients_at_once_are_all_served(server: Server) -> None:
    clients: list[Client] = [server.connect() for _ in range(200)]
    for client in clients:
        client.send(request("/later?seconds=0.1&say=served"))
    assert all(client.read_response().body == b"served" for client in clients)
    for client in clients:
        client.close()
