"""Clients that speak TLS to a server under test, and the files that both need.

Not a fixture. `make_files.sh` says what each file is.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from harness import Client, Server

FILES = Path(__file__).resolve().parent / "files"
PASSWORD = "a password"


def file(name: str) -> str:
    return str(FILES / name)


# What most servers here are started with.
OURS = ("--ssl-certfile", file("server.pem"), "--ssl-keyfile", file("server.key"))


def trusting(*, client: str = "", **settings: Any) -> ssl.SSLContext:
    """A client's side that believes the tests' authority, with a certificate of its own if one is named."""
    context = ssl.create_default_context(cafile=file("authority.pem"))
    for name, value in settings.items():
        setattr(context, name, value)
    if client:
        key = client.removesuffix("-chain")
        context.load_cert_chain(file(f"{client}.pem"), file(f"{key}.key"))
    return context


class Secured(Client):
    """A connection by TLS."""

    socket: ssl.SSLSocket

    def __init__(
        self, port: int, context: ssl.SSLContext | None = None, *, name: str = "localhost", **options: Any
    ) -> None:
        super().__init__(("127.0.0.1", port), **options)
        try:
            wrapped = (context or trusting()).wrap_socket(
                self.socket, server_hostname=name, suppress_ragged_eofs=False
            )
        except BaseException:
            self.socket.close()
            raise
        self.socket = wrapped

    def certificate(self) -> bytes:
        """What the server has shown, in DER."""
        shown = self.socket.getpeercert(binary_form=True)
        assert shown is not None
        return shown


def reach(server: Server, context: ssl.SSLContext | None = None, **options: Any) -> Secured:
    """The first address of a server."""
    return Secured(server.port, context, **options)


def facts(server: Server, context: ssl.SSLContext | None = None, **options: Any) -> Any:
    """What the application is told of its connection."""
    with reach(server, context, **options) as client:
        told = client.ask("/tls").json()
    assert told["scheme"] == "https"
    return told["tls"]


def der(name: str) -> bytes:
    """The first certificate of a file."""
    text = (FILES / name).read_text()
    return ssl.PEM_cert_to_DER_cert(
        text[: text.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n"
    )


def pem(name: str) -> str:
    return ssl.DER_cert_to_PEM_cert(der(name))


def hello() -> bytes:
    """A ClientHello, as a client sends it first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("nobody has answered")
