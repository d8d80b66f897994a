"""The PROXY protocol, both versions: who speaks for others before the first byte, of HTTP or of TLS."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from harness import UVICORN, Client, ClosedError, Server, has_ipv6, request

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn does not speak it")
TARGET = "proxied_app:app"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
ASK = request("/", headers=[("Connection", "close")])
LINE = b"PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n"


def binary(rest: bytes, *, command: int = 0x21, family: int = 0x11, length: int | None = None) -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(rest) if length is None else length) + rest


FOUR = bytes([192, 0, 2, 1, 192, 0, 2, 2]) + struct.pack("!HH", 1234, 80)
SIX = bytes(15) + b"\1" + bytes(15) + b"\2" + struct.pack("!HH", 1234, 80)
# A kind of each that HAProxy writes: a name, a checksum, what TLS came to with values within, and padding.
VALUES = (
    b"\x02\0\x04test"
    + b"\x03\0\x04\1\2\3\4"
    + b"\x20\0\x0f"
    + b"\x01\0\0\0\0\x21\0\x07TLSv1.3"
    + b"\x04\0\0"
    + b"\xe0\0\x01x"
)
NAMED = (["192.0.2.1", 1234], ["192.0.2.2", 80])
HEADERS: dict[str, tuple[bytes, Any]] = {
    "a line": (LINE, NAMED),
    "a line of IPv6": (b"PROXY TCP6 ::1 ::2 1234 80\r\n", (["::1", 1234], ["::2", 80])),
    "mapped addresses": (b"PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.2 1234 80\r\n", NAMED),
    "unknown": (b"PROXY UNKNOWN\r\n", None),
    "unknown with more": (b"PROXY UNKNOWN ::1 whatever 1\r\n", None),
    "the longest line": (b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n", None),
    "binary": (binary(FOUR), NAMED),
    "binary of IPv6": (binary(SIX, family=0x21), (["::1", 1234], ["::2", 80])),
    "values": (binary(FOUR + VALUES), NAMED),
    "a kilobyte of values": (binary(FOUR + b"\xea\x04\0" + b"x" * 1024), NAMED),
    "local": (binary(b"", command=0x20, family=0), None),
    "local with garbage": (binary(b"garbage", command=0x20), None),
    "unspecified": (binary(b"\1\2\3", family=0), None),
    "a datagram": (binary(FOUR, family=0x12), None),
}
REFUSED: dict[str, bytes] = {
    "no header": ASK * 2,
    "a line of 108 bytes": b"PROXY UNKNOWN " + b"f" * 92 + b"\r\n",
    "a line without an end": b"PROXY TCP4 " + b"1" * 200,
    "a line feed alone": LINE.replace(b"\r\n", b"\n"),
    "a line of another family": b"PROXY TCP4 ::1 ::2 1234 80\r\n",
    "a port too large": b"PROXY TCP4 192.0.2.1 192.0.2.2 65536 80\r\n",
    "another version": binary(FOUR, command=0x11),
    "another command": binary(FOUR, command=0x22),
    "another family": binary(FOUR, family=0x41),
    "too short for its addresses": binary(FOUR[:11]),
    "a value that reaches beyond it": binary(FOUR + b"\x04\0\x09x"),
    "half a value": binary(FOUR + b"\x04\0"),
    "more than four kilobytes": binary(FOUR, length=5000),
    "almost a signature": SIGNATURE[:-1] + b"x" + binary(FOUR)[12:],
}


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server(TARGET, "--proxy-protocol", "--loop", loop, "--log-level", "debug") as server:
        yield server


def ends(client: Client) -> tuple[Any, Any]:
    scope = client.read_response().json()
    return scope["client"], scope["server"]


@pytest.mark.parametrize("header", HEADERS)
def test_a_connection_is_whose_its_header_names(server: Server, header: str) -> None:
    said, named = HEADERS[header]
    with server.connect() as client:
        client.send(said + ASK)
        assert ends(client) == (named or (["127.0.0.1", client.port], ["127.0.0.1", server.port]))


@pytest.mark.parametrize("header", ["a line", "unknown", "values"])
def test_a_header_may_come_in_parts(server: Server, header: str) -> None:
    said, named = HEADERS[header]
    whole = said + ASK
    for cut in range(1, len(said) + 2):
        with server.connect() as client:
            client.send(whole[:cut])
            client.is_readable(0.002)
            client.send(whole[cut:])
            assert ends(client)[0] == (named[0] if named else ["127.0.0.1", client.port])
    with server.connect() as client:
        for byte in whole:
            client.send(bytes([byte]))
        assert client.read_response().status == 200


@pytest.mark.parametrize("garbage", REFUSED)
def test_what_is_no_header_is_closed_without_a_word(server: Server, garbage: str) -> None:
    with server.connect() as client:
        port = client.port
        client.try_send(REFUSED[garbage] + ASK)
        assert client.read_to_any_end() == b""
    line = server.wait_line(f"Refused a request of 127.0.0.1:{port}: ")
    assert "no connection came of it: " in line


def test_a_header_that_does_not_come_is_not_waited_for_long(server: Server) -> None:
    with server.connect() as silent, server.connect() as slow:
        slow.send(LINE[:-1])
        assert (silent.read_to_any_end(), slow.read_to_any_end()) == (b"", b"")
    server.wait_line("its PROXY header did not come in its time", count=2)


def test_an_end_within_a_header_is_the_end(server: Server) -> None:
    with server.connect() as client:
        client.send(LINE[:-1])
        client.socket.shutdown(socket.SHUT_WR)
        assert client.read_to_any_end() == b""
    server.wait_line("it ended before its PROXY header did")


def test_a_second_header_is_no_request(server: Server) -> None:
    with server.connect() as client:
        client.send(LINE + LINE + ASK)
        assert client.read_response().status == 400


def test_the_client_that_is_named_is_in_lines_and_has_its_own_trust(server: Server) -> None:
    with server.connect() as client:
        client.send(LINE + request("/", headers=[("X-Forwarded-For", "1.2.3.4"), ("Connection", "close")]))
        assert ends(client)[0] == NAMED[0]
    server.wait_line('192.0.2.1:1234 - "GET / HTTP/1.1" 200', stream="stdout")
    options = ("--proxy-protocol", "--forwarded-allow-ips", "192.0.2.0/24")
    with Server(TARGET, *options) as server, server.connect() as client:
        client.send(LINE + request("/", headers=[("X-Forwarded-For", "1.2.3.4")]))
        assert ends(client)[0] == ["1.2.3.4", 0]


def test_who_may_not_speak_for_others_is_not_let_in() -> None:
    options = ("--proxy-protocol", "--proxy-protocol-allow-ips", "10.0.0.0/8", "--log-level", "debug")
    with Server(TARGET, *options) as server, server.connect() as client:
        client.try_send(LINE + ASK)
        assert client.read_to_any_end() == b""
        server.wait_line("it may not speak for others by the PROXY protocol")
        server.stop()
        assert "no_proxy_header" in server.stderr


def test_where_it_is_off_a_header_is_no_request() -> None:
    with Server(TARGET) as server:
        for said in (LINE, binary(FOUR)):
            with server.connect() as client:
                client.send(said + ASK)
                assert client.read_response().status == 400
    with Server(TARGET, "--proxy-protocol-allow-ips", "10.0.0.1") as server:
        server.wait_line("--proxy-protocol-allow-ips does nothing without --proxy-protocol.")


def test_it_comes_before_tls() -> None:
    with Server(TARGET, "--proxy-protocol", "--ssl-self-signed") as server:
        for said in (LINE, binary(FOUR + VALUES)):
            with server.connect() as client:
                client.send(said)
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
                client.send(ASK)
                scope = client.read_response().json()
                assert (scope["client"], scope["scheme"]) == (NAMED[0], "https")


def test_it_is_spoken_on_unix_sockets_and_of_them(tmp_path: Any) -> None:
    path = str(tmp_path / "s")
    unix = binary(b"/from".ljust(108, b"\0") + b"/to".ljust(108, b"\0"), family=0x31)
    with Server(TARGET, "--proxy-protocol", "--uds", path):
        with Client(path) as client:
            client.send(LINE + ASK)
            assert ends(client) == NAMED
        with Client(path) as client:
            client.send(unix + ASK)
            assert ends(client) == (None, [path, None])


def test_an_address_of_ipv6_may_speak() -> None:
    if not has_ipv6():
        pytest.skip("no IPv6 here")
    with (
        Server(TARGET, "--host", "::1", "--proxy-protocol") as server,
        Client(("::1", server.port)) as client,
    ):
        client.send(LINE + ASK)
        assert ends(client) == NAMED


def test_a_stop_does_not_wait_for_a_header() -> None:
    with Server(TARGET, "--proxy-protocol") as server, server.connect() as client:
        client.send(LINE[:9])
        server.stop()
        with pytest.raises(ClosedError):
            client.read_response()
