"""What programs hold for `config.ssl`: as much of an `ssl.SSLContext` as stands for an option of ours.

Not a context of Python's: handshakes are made by rustls, as the options say (`encryption.py`), and this only
sets those.

Invariant: what it is told either holds for each handshake, or is refused. Nothing is kept that does nothing.
"""

import os
import ssl
from typing import TYPE_CHECKING, Any

from bridgehead.errors import StartError

if TYPE_CHECKING:
    from bridgehead.server_config import Config

_BOTH, _ONLY_12 = ssl.PROTOCOL_TLS_SERVER, 5  # as `ssl_version` has them
_MINIMUM = {ssl.TLSVersion.MINIMUM_SUPPORTED: "1.2", ssl.TLSVersion.MAXIMUM_SUPPORTED: "1.3"}
_NO_12, _NO_13 = int(ssl.Options.OP_NO_TLSv1_2), int(ssl.Options.OP_NO_TLSv1_3)
# What rustls never does, or always; who allows it, or asks for it, changes nothing.
_HOLDS = int(
    ssl.Options.OP_NO_SSLv2
    | ssl.Options.OP_NO_SSLv3
    | ssl.Options.OP_NO_TLSv1
    | ssl.Options.OP_NO_TLSv1_1
    | ssl.Options.OP_NO_COMPRESSION
    | ssl.Options.OP_NO_RENEGOTIATION
    | ssl.Options.OP_SINGLE_DH_USE
    | ssl.Options.OP_SINGLE_ECDH_USE
)
# How OpenSSL goes about it: nothing that a program could ask of rustls.
_OPENSSLS = int(
    ssl.Options.OP_ALL
    | ssl.Options.OP_CIPHER_SERVER_PREFERENCE
    | ssl.Options.OP_ENABLE_MIDDLEBOX_COMPAT
    | getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
)

# What has another way here.
_INSTEAD = {
    "check_hostname": "a client's certificate has no name of a host: ask who it is in the application",
    "keylog_filename": "keys are not written anywhere",
    "load_default_certs": "name one file of authorities with ssl_ca_certs",
    "set_default_verify_paths": "name one file of authorities with ssl_ca_certs",
    "set_servername_callback": "give several files as ssl_certfile: a client is shown the one of its name",
    "sni_callback": "give several files as ssl_certfile: a client is shown the one of its name",
    "verify_flags": "name lists of certificates that were called back with ssl_crl",
    "wrap_bio": "connections are made by the server",
    "wrap_socket": "connections are made by the server",
}
# What these are, and stay.
_AS_IT_IS = {"check_hostname": False, "keylog_filename": None, "sni_callback": None}
_SENTENCE = "TLS is spoken by rustls here, and not by a context of Python's"


def refused(what: str, instead: str) -> StartError:
    """What was given, why it cannot hold, and what to set."""
    return StartError(f"{what}: {_SENTENCE}", instead)


class Context:
    """Sets options of a configuration, by the names of `ssl.SSLContext`."""

    _config: "Config"

    def __init__(self, config: "Config") -> None:
        object.__setattr__(self, "_config", config)

    @property
    def minimum_version(self) -> ssl.TLSVersion:
        """`ssl_min_version`."""
        return ssl.TLSVersion.TLSv1_3 if self._config.ssl_min_version == "1.3" else ssl.TLSVersion.TLSv1_2

    @minimum_version.setter
    def minimum_version(self, version: ssl.TLSVersion) -> None:
        known = ssl.TLSVersion(version)
        asked = _MINIMUM.get(known) or known.name.removeprefix("TLSv").replace("_", ".")
        self._set("minimum_version", ssl_min_version=asked)

    @property
    def maximum_version(self) -> ssl.TLSVersion:
        """`ssl_version`, which is of both versions or of 1.2 alone."""
        only_12 = self._config.ssl_version == _ONLY_12
        return ssl.TLSVersion.TLSv1_2 if only_12 else ssl.TLSVersion.TLSv1_3

    @maximum_version.setter
    def maximum_version(self, version: ssl.TLSVersion) -> None:
        known = ssl.TLSVersion(version)
        match known:
            case ssl.TLSVersion.TLSv1_3 | ssl.TLSVersion.MAXIMUM_SUPPORTED:
                self._set("maximum_version", ssl_version=int(_BOTH))
            case ssl.TLSVersion.TLSv1_2:
                self._set("maximum_version", ssl_version=_ONLY_12)
            case _:
                raise refused(f"config.ssl.maximum_version = {known!r}", "TLS 1.2 and 1.3 are spoken")

    @property
    def verify_mode(self) -> ssl.VerifyMode:
        """`ssl_cert_reqs`."""
        return ssl.VerifyMode(self._config.ssl_cert_reqs)

    @verify_mode.setter
    def verify_mode(self, mode: ssl.VerifyMode) -> None:
        self._set("verify_mode", ssl_cert_reqs=int(mode))

    @property
    def options(self) -> ssl.Options:
        """What rustls does anyway, and the versions that are left out."""
        without_12 = _NO_12 if self.minimum_version == ssl.TLSVersion.TLSv1_3 else 0
        without_13 = _NO_13 if self.maximum_version == ssl.TLSVersion.TLSv1_2 else 0
        return ssl.Options(_HOLDS | _OPENSSLS | without_12 | without_13)

    @options.setter
    def options(self, wanted: int) -> None:
        unknown = int(wanted) & ~(_HOLDS | _OPENSSLS | _NO_12 | _NO_13)
        if unknown:
            what = f"config.ssl.options with {ssl.Options(unknown)!r}"
            raise refused(what, "leave it out: docs/tls.md has what is settled by options")
        lowest = "1.3" if wanted & _NO_12 else "1.2"
        number = _ONLY_12 if wanted & _NO_13 else self._config.ssl_version
        if not wanted & _NO_13 and number == _ONLY_12:
            number = int(_BOTH)
        self._set("options", ssl_min_version=lowest, ssl_version=number)

    @property
    def protocol(self) -> int:
        """`ssl_version`."""
        return self._config.ssl_version

    def set_ciphers(self, ciphers: str, /) -> None:
        """`ssl_ciphers`; words that name none are refused as the server starts."""
        self._set("set_ciphers", ssl_ciphers=ciphers)

    def set_alpn_protocols(self, protocols: list[str]) -> None:
        """`http2`."""
        if set(protocols) not in ({"http/1.1"}, {"h2", "http/1.1"}):
            what = f"config.ssl.set_alpn_protocols({protocols!r})"
            raise refused(what, "offered are http/1.1, and h2 before it unless http2 is off")
        self._set("set_alpn_protocols", http2="h2" in protocols)

    def load_verify_locations(
        self,
        cafile: str | os.PathLike[str] | None = None,
        capath: object = None,
        cadata: object = None,
    ) -> None:
        """`ssl_ca_certs`: one file, in which all of them are."""
        if capath is not None or cadata is not None or cafile is None:
            what = "config.ssl.load_verify_locations of a folder, or of certificates without a file"
            raise refused(what, "write them into one file (PEM), and name it: ssl_ca_certs")
        with open(cafile, "rb"):  # as Python's: it says at once that there is none
            pass
        before = self._config.ssl_ca_certs
        if before is not None and os.path.abspath(before) != os.path.abspath(cafile):
            what = f"config.ssl.load_verify_locations({os.fspath(cafile)!r}) after {before!r}"
            raise refused(what, "write all authorities into one file (PEM), and name that: ssl_ca_certs")
        self._set("load_verify_locations", ssl_ca_certs=cafile)

    def load_cert_chain(self, certfile: str, keyfile: str | None = None, password: object = None) -> None:
        """The files of the configuration are read again once they change; others are refused."""
        named = {os.path.abspath(each) for each in (*self._config.certificate_files, *self._config.key_files)}
        for file in (certfile, keyfile):
            if file is not None and os.path.abspath(file) not in named:
                raise ValueError(
                    f"{file} is not among the files this server was started with: {sorted(named)}; "
                    "name it as ssl_certfile or ssl_keyfile, or write into those: they are read again"
                )
        if password is not None and not self._config.ssl_keyfile_password:
            raise ValueError("the server was started without ssl_keyfile_password: set that")

    def __getattr__(self, name: str) -> Any:
        # Only what is not above comes here.
        if name in _AS_IT_IS:
            return _AS_IT_IS[name]
        if name.startswith("__") or not hasattr(ssl.SSLContext, name):
            raise AttributeError(f"config.ssl has no {name!r}", name=name, obj=self)
        raise AttributeError(str(_not_here(name)), name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        if name in _AS_IT_IS and value == _AS_IT_IS[name]:
            return
        raise _not_here(f"{name} = {value!r}", name)

    def __reduce__(self) -> Any:
        return Context, (self._config,)

    def _set(self, told: str, **options: object) -> None:
        if all(getattr(self._config, name) == value for name, value in options.items()):
            return
        if self._config.is_handed_over:
            names = ", ".join(options)
            raise StartError(
                f"config.ssl.{told}: the server makes handshakes with this configuration already",
                f"set it before the server starts, or give {names} to another Config",
            )
        for name, value in options.items():
            setattr(self._config, name, value)


def _not_here(told: str, name: str = "") -> StartError:
    return refused(
        f"config.ssl.{told}", _INSTEAD.get(name or told, "docs/tls.md has what is settled by options")
    )
