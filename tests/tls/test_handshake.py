"""How clients are let in: versions, names, certificates of their own, and what is no handshake.

Rows 73 to 77 and 79 of the faults that a server meets.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import ssl
import subprocess
from collections.abc import Iterator

import pytest
from harness import Client, Server
from secured import OURS, Secured, der, facts, file, hello, pem, reach, trusting

ALERT = b"\x15"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """It has two certificates, and asks clients for theirs."""
    others = ("--ssl-certfile", file("other.pem"), "--ssl-keyfile", file("other.key"))
    asks = ("--ssl-cert-reqs", "1", "--ssl-ca-certs", file("authority.pem"), "--ssl-crl", file("revoked.crl"))
    with Server("tls_app:app", *OURS, *others, *asks) as server:
        yield server


@pytest.mark.parametrize(
    ("version", "number"), [(ssl.TLSVersion.TLSv1_2, 0x0303), (ssl.TLSVersion.TLSv1_3, 0x0304)]
)
def test_the_application_is_told_of_the_handshake(
    server: Server, version: ssl.TLSVersion, number: int
) -> None:
    context = trusting(minimum_version=version, maximum_version=version)
    with reach(server, context) as client:
        spoken = client.socket.cipher()
        told = client.ask("/tls").json()["tls"]
    assert spoken is not None
    numbers = {each["name"]: each["id"] & 0xFFFF for each in context.get_ciphers()}
    assert told == {
        "server_cert": pem("server.pem"),
        "client_cert_chain": [],
        "client_cert_name": None,
        "client_cert_error": None,
        "tls_version": number,
        "cipher_suite": numbers[spoken[0]],
    }


def test_a_client_that_has_a_certificate_shows_it(server: Server) -> None:
    told = facts(server, trusting(client="client-chain"))
    chain = told["client_cert_chain"]
    assert chain[0] == pem("client.pem")
    assert len(chain) == 2
    assert told["client_cert_name"] == r"CN=alice,O=Rot\, Weiß \+ Co,C=DE"


def test_each_request_is_told_of_its_own_client_and_may_change_what_it_was_told(server: Server) -> None:
    with (
        reach(server, trusting(client="client-chain")) as known,
        reach(server) as nobody,
        reach(server) as another,
    ):
        shown = known.ask("/tls").json()["tls"]
        for _ in range(3):
            assert known.ask("/spoil").json()["client_cert_name"] == "nobody"
            assert nobody.ask("/spoil").json()["client_cert_chain"] == ["nobody's"]
            assert known.ask("/tls").json()["tls"] == shown
            for client in (nobody, another):
                told = client.ask("/tls").json()["tls"]
                assert (told["client_cert_chain"], told["client_cert_name"]) == ([], None)
                assert told["server_cert"] == shown["server_cert"]


@pytest.mark.parametrize("client", ["stranger", "revoked"])
def test_a_certificate_that_does_not_hold_ends_the_handshake(server: Server, client: str) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        facts(server, trusting(client=client))


def test_the_name_that_a_client_asks_for_chooses_the_certificate(server: Server) -> None:
    for name, shown in [
        ("localhost", "server.pem"),
        ("other.test", "other.pem"),
        ("any.wild.test", "other.pem"),
        ("two.of.wild.test", "server.pem"),
        ("nobody.test", "server.pem"),
        ("127.0.0.1", "server.pem"),
    ]:
        with reach(server, trusting(check_hostname=False), name=name) as client:
            assert client.certificate() == der(shown), name


@pytest.mark.parametrize(
    ("ciphers", "shown"),
    [
        ("ECDHE-RSA-AES128-GCM-SHA256", "rsa.pem"),
        ("ECDHE-ECDSA-AES128-GCM-SHA256", "server.pem"),
        ("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256", "server.pem"),
    ],
)
def test_of_two_kinds_of_keys_for_a_name_a_client_is_shown_one_that_its_ciphers_go_with(
    ciphers: str, shown: str
) -> None:
    context = trusting(maximum_version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(ciphers)
    with (
        Server(
            "tls_app:app", *OURS, "--ssl-certfile", file("rsa.pem"), "--ssl-keyfile", file("rsa.key")
        ) as two,
        reach(two, context) as client,
    ):
        assert client.certificate() == der(shown)


def test_protocols_that_are_not_there_are_refused(server: Server) -> None:
    context = trusting()
    context.set_alpn_protocols(["nonsense"])
    with pytest.raises(ssl.SSLError, match=r"(?i)no.application.protocol"):
        reach(server, context)
    context.set_alpn_protocols(["nonsense", "http/1.1"])
    with reach(server, context) as client:
        assert client.socket.selected_alpn_protocol() == "http/1.1"


def test_a_body_passes_both_ways_and_the_connection_is_kept(server: Server) -> None:
    body = bytes(range(256)) * 8192
    with reach(server) as client:
        assert client.ask("/echo", method="POST", body=body).body == body
        assert len(client.ask("/chunks?count=40&size=50000").body) == 2_000_000
        client.assert_open()


def test_a_client_that_closes_by_the_word_hears_the_word(server: Server) -> None:
    with reach(server) as client:
        client.assert_open()
        # Sends `close_notify`, and waits for ours; an end without it is an error here.
        client.socket.unwrap().close()


def test_a_body_that_is_cut_off_is_never_whole(server: Server) -> None:
    with reach(server) as client:
        client.send(b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf")
        # TCP's end, without `close_notify`.
        client.half_close()
    with reach(server) as client:
        assert client.ask("/notes/truncated").json() is True


def test_a_hello_may_come_by_bytes(server: Server) -> None:
    said = hello()
    with Client(("127.0.0.1", server.port)) as client:
        for place in range(len(said)):
            client.send(said[place : place + 1])
        # A ServerHello, in a record of a handshake.
        assert client.read_exactly(1) == b"\x16"


def test_a_hello_may_come_in_records_of_one_byte(server: Server) -> None:
    said = hello()
    kind, version, message = said[:1], said[1:3], said[5:]
    with Client(("127.0.0.1", server.port)) as client:
        client.send(
            b"".join(kind + version + b"\x00\x01" + message[at : at + 1] for at in range(len(message)))
        )
        assert client.read_exactly(1) in (b"\x16", ALERT)
    facts(server)


NO_HANDSHAKES = {
    "HTTP in the clear": b"GET / HTTP/1.1\r\nHost: test\r\n\r\n",
    "garbage": bytes(range(256)) * 256,
    "zeroes": bytes(65536),
    "the end of a handshake": b"\x15\x03\x03\x00\x02\x01\x00",
    "a flood of warnings": b"\x15\x03\x03\x00\x02\x01\x5a" * 10_000,
    "a flood of changed ciphers": b"\x14\x03\x03\x00\x01\x01" * 10_000,
    "a record that is too long": b"\x16\x03\x01\xff\xff",
}


@pytest.mark.parametrize("bytes_sent", NO_HANDSHAKES.values(), ids=NO_HANDSHAKES.keys())
def test_what_is_no_handshake_is_closed(server: Server, bytes_sent: bytes) -> None:
    with Client(("127.0.0.1", server.port)) as client:
        client.try_send(bytes_sent)
        answer = client.read_to_any_end()
        assert answer[:1] in (b"", ALERT), answer
    facts(server)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_nothing_is_negotiated_again(server: Server) -> None:
    """Of TLS 1.2, by the client that can ask for it; its R on a line by itself does."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2"]
    asked = subprocess.run(command, input=b"R\n", capture_output=True, timeout=30)
    said = (asked.stdout + asked.stderr).decode(errors="replace")
    assert "RENEGOTIATING" in said
    assert "no renegotiation" in said
    facts(server)


def test_an_end_in_the_middle_of_a_handshake_is_its_end(server: Server) -> None:
    with Client(("127.0.0.1", server.port)) as client:
        client.send(hello() + b"\x15\x03\x03\x00\x02\x01\x00")
        client.half_close_quietly()
        client.read_to_any_end()
    facts(server)


def test_clients_that_leave_or_say_nothing_hold_up_nobody(server: Server) -> None:
    said = hello()
    with contextlib.ExitStack() as silent:
        for _ in range(200):
            silent.enter_context(Client(("127.0.0.1", server.port)))
            leaving = Client(("127.0.0.1", server.port))
            leaving.try_send(said)
            leaving.reset()
        facts(server)
    assert "panicked" not in server.stderr
    assert "Traceback" not in server.stderr


def test_a_client_without_the_certificate_that_is_demanded_is_not_let_in() -> None:
    asks = ("--ssl-cert-reqs", "2", "--ssl-ca-certs", file("authority.pem"))
    with Server("tls_app:app", *OURS, *asks, "--ssl-min-version", "1.3", "--log-level", "debug") as server:
        assert facts(server, trusting(client="client-chain"))["client_cert_name"].startswith("CN=alice")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            facts(server)
        old = trusting(maximum_version=ssl.TLSVersion.TLSv1_2)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Secured(server.port, old)
        server.wait_line("no handshake came of it")


def test_a_client_that_is_sending_already_reads_why_it_is_not_let_in() -> None:
    asks = ("--ssl-cert-reqs", "2", "--ssl-ca-certs", file("authority.pem"))
    with Server("tls_app:app", *OURS, *asks) as server:
        for _ in range(10):
            context = trusting(minimum_version=ssl.TLSVersion.TLSv1_3)
            context.set_alpn_protocols(["h2"])
            # By TLS 1.3 it takes its handshake for good.
            with Secured(server.port, context) as client:
                client.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                assert select.select([client.socket], [], [], 30)[0]
                client.socket.sendall(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
                with pytest.raises(ssl.SSLError, match="certificate required"):
                    client.socket.recv(1)


def test_ciphers_are_those_that_are_asked_for() -> None:
    words = ("--ssl-ciphers", "ECDHE+CHACHA20", "--ssl-version", "5")
    with Server("tls_app:app", *OURS, *words) as server, reach(server) as client:
        assert client.socket.version() == "TLSv1.2"
        spoken = client.socket.cipher()
        assert spoken is not None
        assert "CHACHA20" in spoken[0]
