"""Binding: what is listened on, how it is printed, and what is refused."""

import fcntl
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bridgehead import socket_file
from bridgehead.address import Address, TcpAddress, parse_address
from bridgehead.config import Config
from bridgehead.errors import StartError
from bridgehead.sockets import Bound, Kind, bind

Listen = Callable[..., list[Bound]]


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no ::1 here")


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Binds what is written, and gives it back afterwards."""
    with ExitStack() as stack:

        def listen_on(*written: str, backlog: int = 8) -> list[Bound]:
            bound = bind(map(parse_address, written), backlog=backlog)
            for each in bound:
                stack.callback(each.close)
            return bound

        yield listen_on


def port_of(bound: Bound) -> int:
    port: int = bound.socket.getsockname()[1]
    return port


def refused(*addresses: Address) -> StartError:
    with pytest.raises(StartError) as problem:
        bind(addresses, backlog=8)
    return problem.value


def test_port_0_prints_the_real_port(listen: Listen) -> None:
    (bound,) = listen("127.0.0.1:0")
    assert port_of(bound) != 0
    assert bound.label == f"http://127.0.0.1:{port_of(bound)}"
    assert bound.kind is Kind.TCP


@pytest.mark.parametrize("written", ["127.0.0.1:0", "unix:app.sock"])
def test_a_bound_socket_listens_alone_without_blocking(
    listen: Listen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (bound,) = listen(written)
    sock = bound.socket
    assert not sock.get_inheritable()
    assert not sock.getblocking()
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    if bound.kind is Kind.TCP:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 0


def test_a_name_is_bound_on_all_its_addresses_with_one_port(listen: Listen) -> None:
    bound = listen("localhost:0")
    assert len({port_of(each) for each in bound}) == 1
    assert len({each.socket.getsockname()[0] for each in bound}) == len(bound)


def test_a_name_needs_only_one_address_that_is_here(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = ("127.0.0.1", 0), ("192.0.2.1", 0)  # TEST-NET-1 is nobody's
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in (elsewhere, here)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    (bound,) = listen("twofold:0")
    assert bound.socket.getsockname()[0] == "127.0.0.1"


@needs_ipv6
@pytest.mark.parametrize("written", ["[::]:0", ":0"])
def test_every_interface_means_both_families(listen: Listen, written: str) -> None:
    (bound,) = listen(written)
    assert bound.label == f"http://[::]:{port_of(bound)}"
    for host in ("127.0.0.1", "::1"):
        socket.create_connection((host, port_of(bound)), timeout=5).close()


@needs_ipv6
def test_an_ipv6_address_is_printed_in_brackets(listen: Listen) -> None:
    (bound,) = listen("[::1]:0")
    assert bound.label == f"http://[::1]:{port_of(bound)}"


def test_an_address_in_use_is_named_and_never_shared(listen: Listen) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        problem = refused(parse_address(f"127.0.0.1:{port}"))
        by_port = refused(*Config(port=port).addresses())
    assert problem.message == f"127.0.0.1:{port} is already in use"
    assert "another port with --bind (0 takes a free one)" in problem.hint
    assert "another port with --port (0 takes a free one)" in by_port.hint
    (again,) = listen(f"127.0.0.1:{port}")
    assert refused(parse_address(f"0.0.0.0:{port}")).message == f"0.0.0.0:{port} is already in use"
    assert port_of(again) == port


def test_one_bad_address_releases_the_others(tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(parse_address(f"unix:{path}"), parse_address(f"127.0.0.1:{port}"))
    assert not path.exists()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("192.0.2.1:8000", "192.0.2.1:8000 is not an address of this machine"),
        ("no.such.name.invalid:80", "the host 'no.such.name.invalid' cannot be resolved: "),
        (f"{'x' * 70}.example:80", f"the host '{'x' * 70}.example' cannot be resolved: "),
        (
            "unix:/no/such/place/app.sock",
            "unix:/no/such/place/app.sock is in a directory that does not exist",
        ),
        (f"unix:/tmp/{'x' * 120}", f"unix:/tmp/{'x' * 120} cannot be listened on: AF_UNIX path too long"),
    ],
)
def test_an_address_that_cannot_be_bound_is_explained(written: str, message: str) -> None:
    problem = refused(parse_address(written))
    assert problem.message.startswith(message)
    assert problem.hint


@needs_ipv6
@pytest.mark.parametrize(
    ("host", "hint"), [("::ffff:127.0.0.1", "`127.0.0.1`"), ("fe80::1", "`fe80::1%eth0`")]
)
def test_an_ipv6_address_that_needs_another_form_is_told_which(host: str, hint: str) -> None:
    assert hint in refused(TcpAddress(host=host, port=0)).hint


def test_a_unix_socket_is_for_everyone_and_goes_with_the_server(listen: Listen, tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    (bound,) = listen(f"unix:{path}")
    assert (bound.kind, bound.label) == (Kind.UNIX, f"unix socket {path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    bound.close()
    assert not path.exists()
    bound.close()


def test_the_file_of_a_dead_server_is_replaced(listen: Listen, tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    listen(f"unix:{path}")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_server_that_is_bound_and_does_not_listen_yet_is_not_taken_for_a_dead_one(
    listen: Listen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = f"unix:{tmp_path}/app.sock"
    messages: list[str] = []
    waits = threading.Event()
    rival = threading.Thread(target=lambda: messages.append(refused(parse_address(written)).message))
    lock, begin = fcntl.flock, socket.socket.listen

    def lock_and_tell(descriptor: int, how: int) -> None:
        try:
            lock(descriptor, how)
        except BlockingIOError:
            waits.set()
            raise

    def listen_late(self: socket.socket, backlog: int) -> None:
        rival.start()
        assert waits.wait(10)
        begin(self, backlog)

    monkeypatch.setattr(fcntl, "flock", lock_and_tell)
    monkeypatch.setattr(socket.socket, "listen", listen_late)
    listen(written)
    rival.join(10)
    assert messages == [f"{written} is already in use"]


def test_a_directory_that_somebody_has_locked_for_ever_holds_up_no_start(
    listen: Listen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_file, "_LONGEST", 0.02)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        listen(f"unix:{tmp_path}/app.sock")
    finally:
        os.close(descriptor)


def test_the_socket_of_a_live_server_is_in_use_even_when_its_backlog_is_full(
    listen: Listen, tmp_path: Path
) -> None:
    path = tmp_path / "app.sock"
    listen(f"unix:{path}", backlog=1)
    for _ in range(4):  # a backlog of one holds two, and our own question takes a place
        assert refused(parse_address(f"unix:{path}")).message == f"unix:{path} is already in use"
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.connect(str(path))


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("keep")
    assert refused(parse_address(f"unix:{path}")).message == f"{str(path)!r} exists and is not a socket"
    assert path.read_text() == "keep"


def test_the_file_of_a_successor_is_left_alone(listen: Listen, tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    (first,) = listen(f"unix:{path}")
    path.rename(tmp_path / "old.sock")
    listen(f"unix:{path}")
    first.close()
    assert path.exists()


def test_a_detached_socket_stays_open_when_its_file_goes(listen: Listen, tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    (bound,) = listen(f"unix:{path}")
    with socket.socket(fileno=bound.socket.detach()) as taken:
        bound.close()
        assert taken.getsockname() == str(path)
        assert not path.exists()


@pytest.mark.parametrize("listening", [True, False])
def test_a_descriptor_is_adopted(listen: Listen, listening: bool) -> None:
    given = socket.socket()
    given.bind(("127.0.0.1", 0))
    if listening:
        given.listen()
    given.set_inheritable(True)
    port = given.getsockname()[1]
    (bound,) = listen(f"fd://{given.detach()}")
    assert bound.label == f"http://127.0.0.1:{port}"
    assert not bound.socket.get_inheritable()
    socket.create_connection(("127.0.0.1", port), timeout=5).close()


def test_a_unix_descriptor_keeps_its_file(listen: Listen, tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    given = socket.socket(socket.AF_UNIX)
    given.bind(str(path))
    (bound,) = listen(f"fd://{given.detach()}")
    assert (bound.kind, bound.label) == (Kind.UNIX, f"unix socket {path}")
    bound.close()
    assert path.exists(), "whoever made the file, systemd say, still owns it"


def test_a_descriptor_that_is_not_open_is_refused() -> None:
    read, write = os.pipe()
    os.close(read)
    assert refused(parse_address(f"fd://{read}")).message.startswith(f"fd://{read} is not an open socket: ")
    os.close(write)


def test_a_descriptor_that_is_no_listener_is_refused_and_left_open(tmp_path: Path) -> None:
    with ExitStack() as stack:
        file = stack.enter_context((tmp_path / "file").open("w"))
        datagram = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        datagram.bind(("127.0.0.1", 0))
        unbound = stack.enter_context(socket.socket())
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(server.getsockname()))
        for given, reason in (
            (file, "is not an open socket: "),
            (datagram, "is not a TCP or Unix stream socket"),
            (unbound, "is a socket without an address"),
            (client, "cannot listen: "),
        ):
            number = given.fileno()
            assert refused(parse_address(f"fd://{number}")).message.startswith(f"fd://{number} {reason}")
            os.fstat(number)


@pytest.mark.parametrize(
    ("first", "second"),
    [("127.0.0.1", "0.0.0.0"), ("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "")],
)
def test_two_addresses_of_ours_that_clash_are_told_apart_from_another_server(first: str, second: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    problem = refused(TcpAddress(host=first, port=port), TcpAddress(host=second, port=port))
    assert problem.message == f"{second}:{port} clashes with http://{first}:{port}, which is ours too"
    assert "keep one" in problem.hint


def test_a_taken_address_beside_ours_is_still_another_servers(listen: Listen) -> None:
    (bound,) = listen("127.0.0.2:0")
    port = port_of(bound)
    problem = refused(TcpAddress(host="127.0.0.1", port=port), TcpAddress(host="127.0.0.2", port=port))
    assert problem.message == f"127.0.0.2:{port} is already in use"
