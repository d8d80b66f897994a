"""Where a server can be reached."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from harness import UVICORN, Client, Server, has_ipv6, request

needs_bind = pytest.mark.skipif(UVICORN, reason="uvicorn has no --bind")


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")


def hello(address: tuple[str, int] | str) -> bytes:
    with Client(address) as client:
        return client.ask("/hello").body


def test_a_unix_socket_is_served_and_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with Server("wire_app:app", "--uds", str(path)) as server:
        assert str(path) in server.addresses[0]
        with Client(str(path)) as client:
            client.send(request("/hello") + request("/hello"))
            assert client.read_response().body == b"hello"
            assert client.read_response().body == b"hello"
            client.half_close()
            client.assert_closed()
        server.stop()
    assert not path.exists()


def test_a_unix_socket_left_by_a_killed_server_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with Server("wire_app:app", "--uds", str(path)) as server:
        server.process.kill()
        server.wait_exit()
    assert path.exists()
    with Server("wire_app:app", "--uds", str(path)):
        assert hello(str(path)) == b"hello"


def test_a_stalled_reader_of_a_unix_socket_gets_everything(tmp_path: Path) -> None:
    path = str(tmp_path / "server.sock")
    with Server("wire_app:app", "--uds", path), Client(path) as client:
        assert client.ask("/chunks?count=64&size=65536").body == b"c" * 64 * 65_536


def test_an_inherited_descriptor_is_served() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with Server("wire_app:app", "--fd", str(listener.fileno()), pass_fds=[listener.fileno()]):
            assert hello(("127.0.0.1", port)) == b"hello"


def test_an_inherited_unix_descriptor_is_served(tmp_path: Path) -> None:
    path = str(tmp_path / "inherited.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with Server("wire_app:app", "--fd", str(listener.fileno()), pass_fds=[listener.fileno()]):
            assert hello(path) == b"hello"
    assert Path(path).exists(), "an inherited socket is not ours to remove"


@needs_bind
def test_several_binds_are_all_served(tmp_path: Path) -> None:
    path = str(tmp_path / "server.sock")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        inherited = listener.getsockname()
        options = ["--bind", "127.0.0.1:0", "--bind", "127.0.0.1:0", "--bind", f"unix:{path}"]
        options += ["--bind", f"fd://{listener.fileno()}"]
        with Server("wire_app:app", *options, pass_fds=[listener.fileno()]) as server:
            assert len(set(server.ports[:2])) == 2
            for port in server.ports[:2]:
                assert hello(("127.0.0.1", port)) == b"hello"
            assert hello(path) == b"hello"
            assert hello(inherited) == b"hello"


@needs_bind
def test_a_bind_with_an_equals_sign_is_the_same() -> None:
    with Server("wire_app:app", "--bind=127.0.0.1:0") as server:
        assert hello(("127.0.0.1", server.port)) == b"hello"


@needs_ipv6
def test_an_ipv6_address_is_served() -> None:
    with Server("wire_app:app", "--host", "::1") as server:
        assert server.addresses[0].startswith("http://[::1]:")
        assert hello(("::1", server.port)) == b"hello"


@needs_ipv6
@pytest.mark.skipif(UVICORN, reason="uvicorn takes :: as IPv6 only")
def test_the_unspecified_ipv6_address_is_dual_stack() -> None:
    with Server("wire_app:app", "--host", "::") as server:
        assert hello(("::1", server.port)) == b"hello"
        assert hello(("127.0.0.1", server.port)) == b"hello"


@needs_ipv6
@needs_bind
def test_an_ipv6_bind_is_written_in_brackets() -> None:
    with Server("wire_app:app", "--bind", "[::1]:0", "--bind", "127.0.0.1:0") as server:
        assert hello(("::1", server.ports[0])) == b"hello"
        assert hello(("127.0.0.1", server.ports[1])) == b"hello"


def test_a_host_name_is_served() -> None:
    with (
        Server("wire_app:app", "--host", "localhost") as server,
        socket.create_connection(("localhost", server.port), 10) as connection,
    ):
        connection.sendall(request("/hello", headers=[("Connection", "close")]))
        assert connection.makefile("rb").read().endswith(b"hello")


def test_the_unspecified_ipv4_address_is_served() -> None:
    with Server("wire_app:app", "--host", "0.0.0.0") as server:
        assert hello(("127.0.0.1", server.port)) == b"hello"


def test_a_port_that_was_just_freed_can_be_used_again() -> None:
    with Server("wire_app:app") as first:
        port = first.port
        with first.connect() as client:
            assert client.ask("/hello").status == 200
            first.stop()
    with Server("wire_app:app", "--port", str(port)) as second:
        assert second.port == port
        assert hello(("127.0.0.1", port)) == b"hello"
