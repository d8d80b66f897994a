"""Certificates, keys, and by what clients are let in: options, as a part of `Config`.

The files are read by Rust, which says what is wrong in them; `certificates.py` hands them over.
"""

import os
from dataclasses import dataclass

from bridgehead import address
from bridgehead.bounds import Bounds
from bridgehead.errors import StartError
from bridgehead.options import (
    Shape,
    below,
    choice,
    each_below,
    files,
    files_below,
    many,
    maybe,
    option,
    path,
    switch,
    text,
    unless_empty,
    whole,
)

_NEW = "new: uvicorn has no such option"
_PROTOCOL = whole(0, 2**31 - 1)

# What Python's `ssl` calls the numbers that cannot be had.
_REFUSED = {
    0: "PROTOCOL_SSLv2",
    1: "PROTOCOL_SSLv3",
    3: "PROTOCOL_TLSv1",
    4: "PROTOCOL_TLSv1_1",
    16: "PROTOCOL_TLS_CLIENT",
}
_MINIMUM = choice("1.2", "1.3")
_BROKEN = ("1", "1.0", "1.1")  # RFC 8996
_BOTH, _ONLY_12 = (2, 17), 5  # PROTOCOL_TLS and PROTOCOL_TLS_SERVER, PROTOCOL_TLSv1_2


def protocol(value: object) -> int:
    """An option's reader: a version, as Python's `ssl` numbers them."""
    number = int(_PROTOCOL(value))
    if number in (*_BOTH, _ONLY_12):
        return number
    name = f"ssl.{_REFUSED[number]}" if number in _REFUSED else "no version of ssl's"
    hint = f"leave it out for TLS 1.2 and 1.3; {_ONLY_12} is 1.2 alone, --ssl-min-version 1.3 is 1.3 alone"
    raise StartError(f"{number} is {name}, which cannot be spoken here", hint)


def min_version(value: object) -> str:
    """An option's reader: the lowest version of TLS that is spoken."""
    asked = str(value).strip().lower().removeprefix("tls").removeprefix("v")
    if asked in _BROKEN:
        raise StartError(
            f"TLS {asked} cannot be spoken here: it is broken, and rustls does not have it",
            "leave it out for TLS 1.2 and 1.3; 1.3 is 1.3 alone",
        )
    return _MINIMUM(value)


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class Encryption(Bounds):
    """What the server shows to its clients, and asks of them."""

    ssl_certfile: str | tuple[str, ...] | None = option(
        None,
        read=files,
        shape=Shape.LIST,
        metavar="FILE",
        anchor=files_below,
        group="TLS",
        help="speak TLS with this certificate (PEM, with those that lead to its root); several times",
    )
    ssl_keyfile: str | tuple[str, ...] | None = option(
        None,
        read=files,
        shape=Shape.LIST,
        metavar="FILE",
        unset="in the certificate's file",
        anchor=files_below,
        group="TLS",
        help="its key: PKCS#8, PKCS#1 or SEC1, encrypted or not; one for each certificate, in their order",
    )
    ssl_keyfile_password: str | None = option(
        None,
        read=maybe(text),
        metavar="TEXT",
        group="TLS",
        secret=True,
        help="what the key is encrypted with; others see flags: better in BRIDGEHEAD_SSL_KEYFILE_PASSWORD",
    )
    ssl_self_signed: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="TLS",
        help="speak TLS with a certificate made at the start, which no client trusts: for development",
        differs=_NEW,
    )
    ssl_min_version: str = option(
        "1.2",
        read=min_version,
        metavar="1.2|1.3",
        group="TLS",
        help="the lowest version that is spoken",
        differs=_NEW,
    )
    ssl_version: int = option(
        17,
        read=protocol,
        metavar="NUMBER",
        group="TLS",
        help="as Python's ssl numbers them: 17 and 2 for TLS 1.2 and 1.3, 5 for 1.2 alone",
    )
    ssl_ciphers: str | None = option(
        None,
        read=maybe(text),
        metavar="WORDS",
        unset="those of rustls",
        group="TLS",
        help="ciphers of TLS 1.2 in OpenSSL's words, as 'ECDHE+AESGCM'; see docs/tls.md",
        differs="uvicorn: TLSv1, which is all of OpenSSL's. rustls has nine, and others are refused by name",
    )
    ssl_cert_reqs: int = option(
        0,
        read=whole(0, 2),
        metavar="0|1|2",
        group="TLS",
        help="certificates of clients: 0 not asked for, 1 if there is one, 2 demanded",
    )
    ssl_ca_certs: str | None = option(
        None,
        read=unless_empty(path),
        metavar="FILE",
        anchor=below,
        group="TLS",
        help="whose certificates of clients are taken (PEM)",
    )
    ssl_crl: tuple[str, ...] = option(
        (),
        read=many(path, separator=os.pathsep),
        shape=Shape.LIST,
        metavar="FILE",
        anchor=each_below,
        group="TLS",
        help="which of them were called back (PEM); several times",
        differs=_NEW,
    )
    insecure_bind: tuple[str, ...] = option(
        (),
        read=many(address.bindable),
        shape=Shape.LIST,
        metavar="ADDRESS",
        anchor=address.bound_below,
        group="TLS",
        help="beside TLS, listen here in the clear; written as for --bind, several times",
        differs=_NEW,
    )
    redirect_https: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="TLS",
        help="answer who comes in the clear with the same address by https (308), not with the application",
        differs=_NEW,
    )

    @property
    def certificate_files(self) -> tuple[str, ...]:
        """Each of `ssl_certfile`, which is as it was given."""
        return _several(self.ssl_certfile)

    @property
    def key_files(self) -> tuple[str, ...]:
        """Each of `ssl_keyfile`."""
        return _several(self.ssl_keyfile)

    @property
    def is_ssl(self) -> bool:
        """Whether clients are let in by TLS."""
        return bool(self.ssl_certfile or self.ssl_keyfile or self.ssl_self_signed)

    def refuse_without_tls(self) -> None:
        """What is there for TLS only must not be taken for TLS."""
        for name in ("ssl_ca_certs", "ssl_crl", "ssl_cert_reqs", "insecure_bind", "redirect_https"):
            if getattr(self, name):
                raise StartError(
                    f"--{name.replace('_', '-')} is for TLS, and there is no certificate",
                    "name one with --ssl-certfile, or have one made for development: --ssl-self-signed",
                )


def _several(files: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (files,) if isinstance(files, str) else files or ()
