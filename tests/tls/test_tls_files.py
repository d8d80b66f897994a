"""Which certificates and keys are taken, and what is said of those that are not: no server is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from secured import PASSWORD, file

from bridgehead import Config
from bridgehead.certificates import credentials
from bridgehead.errors import StartError
from bridgehead.print_config import as_file, as_table
from bridgehead.settings import Settings
from bridgehead.sources import Given, resolve

KEYS = [
    ("server.pem", "server.key"),
    ("server.pem", "server-sec1.key"),
    ("server.pem", "server-sec1-aes256.key"),
    ("server.pem", "server-pkcs8-scrypt.key"),
    ("server.pem", "server-pkcs8-sha1-des3.key"),
    ("rsa.pem", "rsa.key"),
    ("rsa.pem", "rsa-pkcs1.key"),
    ("rsa.pem", "rsa-pkcs1-aes128.key"),
    ("rsa.pem", "rsa-pkcs1-des3.key"),
    ("rsa.pem", "rsa-pkcs8-aes256.key"),
    ("chain.pem", "leaf.key"),
    ("both.pem", None),
]
ENCRYPTED = [key for _, key in KEYS if key and ("aes" in key or "des" in key or "scrypt" in key)]


def config(certificate: str | None = "server.pem", key: str | None = "server.key", **options: Any) -> Config:
    """A configuration that fits, but for what is given."""
    named: dict[str, Any] = {
        "ssl_certfile": certificate and file(certificate),
        "ssl_keyfile": key and file(key),
    }
    return Config("wire_app:app", **named, **options)


def problem(asked: Config) -> StartError:
    with pytest.raises(StartError) as caught:
        credentials(asked)
    return caught.value


@pytest.mark.parametrize(("certificate", "key"), KEYS, ids=lambda name: str(name))
def test_a_key_is_taken_in_each_form_that_tools_write(certificate: str, key: str | None) -> None:
    loaded = credentials(config(certificate, key, ssl_keyfile_password=PASSWORD))
    assert loaded is not None
    assert [Path(each).name for each in loaded.files] == [each for each in (certificate, key) if each]


@pytest.mark.parametrize("key", ENCRYPTED)
@pytest.mark.parametrize(
    ("password", "said"),
    [(None, "is encrypted, and there is no password"), ("other", "does not open the key")],
)
def test_an_encrypted_key_needs_its_password(key: str, password: str | None, said: str) -> None:
    certificate = "rsa.pem" if key.startswith("rsa") else "server.pem"
    told = problem(config(certificate, key, ssl_keyfile_password=password))
    assert said in told.message
    assert "--ssl-keyfile-password" in told.hint


@pytest.mark.parametrize("password", [PASSWORD, "other"])
def test_a_key_that_is_encrypted_as_nobody_should_is_not_taken_for_a_wrong_password(password: str) -> None:
    told = problem(config("server.pem", "server-pkcs8-md5-des.key", ssl_keyfile_password=password))
    assert "is encrypted in a way that is not known; PBES2 with PBKDF2 or scrypt" in told.message
    assert "-aes256" in told.hint


MISTAKES = {
    "no such file": (
        {"certificate": "nowhere.pem"},
        "nowhere.pem cannot be read: no such file or directory",
        "check the path",
    ),
    "no certificate": ({"certificate": "server.key"}, "holds no certificate", "PEM"),
    "no key": ({"key": "server.pem"}, "holds no private key", "key"),
    "no key beside": ({"key": None}, "holds no private key", "--ssl-keyfile"),
    "another's key": ({"key": "other.key"}, "does not belong to the certificate", "made for"),
    "another's key of RSA": ({"key": "rsa.key"}, "does not belong to the certificate", "made for"),
    "a key for RSA-PSS alone": ({"key": "rsa-pss.key"}, "for RSA-PSS alone, which is not taken", "plain RSA"),
    "wrong order": (
        {"certificate": "disordered.pem", "key": "leaf.key"},
        "number 2 belongs to the key, number 1 was due",
        "first",
    ),
    "no certificate to the key": ({"certificate": None}, "no certificate to the key", "--ssl-certfile"),
    "nobody to believe": ({"ssl_cert_reqs": 2}, "nobody is known who may have signed", "--ssl-ca-certs"),
    "no authority": (
        {"ssl_cert_reqs": 1, "ssl_ca_certs": file("server.key")},
        "holds no certificate",
        "PEM",
    ),
    "no list": (
        {"ssl_cert_reqs": 1, "ssl_ca_certs": file("authority.pem"), "ssl_crl": (file("server.pem"),)},
        "holds no revocation list",
        "PEM",
    ),
    "no such cipher": ({"ssl_ciphers": "ECDHE+AESGCM:AES128-SHA"}, '"AES128-SHA"', "ECDHE-RSA-AES"),
    "no cipher for 1.2": ({"ssl_ciphers": "TLS_AES_128_GCM_SHA256"}, "no cipher for TLS 1.2", "1.3"),
    "no cipher for the key": (
        {"ssl_ciphers": "aRSA"},
        '--ssl-ciphers "aRSA" leaves no cipher of TLS 1.2 for the certificate in',
        "aECDSA",
    ),
    "no version": ({"ssl_version": 5, "ssl_min_version": "1.3"}, "TLS 1.2 alone", "leave one"),
    "nobody to send on": ({"redirect_https": True}, "nobody comes in the clear", "--insecure-bind"),
}


@pytest.mark.parametrize(("changes", "said", "next_step"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_does_not_fit_is_told_with_the_next_step(changes: Any, said: str, next_step: str) -> None:
    told = problem(config(**changes))
    assert said in told.message
    assert next_step in told.hint


def test_there_is_a_key_for_each_certificate_or_for_none() -> None:
    asked = config()
    asked.ssl_certfile = (file("server.pem"), file("other.pem"))
    assert "2 certificates and 1 keys" in problem(asked).message
    asked.ssl_keyfile = (file("server.key"), file("other.key"))
    assert credentials(asked) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl_ca_certs", file("authority.pem")),
        ("ssl_cert_reqs", 1),
        ("ssl_crl", (file("revoked.crl"),)),
        ("insecure_bind", ("127.0.0.1:0",)),
        ("redirect_https", True),
    ],
)
def test_what_is_for_tls_alone_is_not_taken_for_tls(name: str, value: Any) -> None:
    told = problem(Config("wire_app:app", **{name: value}))
    assert "there is no certificate" in told.message


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (3, "ssl.PROTOCOL_TLSv1,"),
        (4, "ssl.PROTOCOL_TLSv1_1,"),
        (16, "ssl.PROTOCOL_TLS_CLIENT,"),
        (99, "no version"),
    ],
)
def test_a_version_that_cannot_be_spoken_is_refused_by_name(number: int, said: str) -> None:
    with pytest.raises(StartError, match=said):
        config(ssl_version=number)


def test_a_configuration_has_uvicorns_attributes() -> None:
    asked = config()
    assert asked.is_ssl
    assert not Config("wire_app:app").is_ssl
    assert (asked.ssl_version, asked.ssl_cert_reqs, asked.ssl_ca_certs) == (17, 0, None)
    assert asked.addresses()[0].secure


def test_a_password_is_not_printed() -> None:
    given = {"ssl_keyfile_password": Given(value="secret", source="a test")}
    settings = Settings(resolved=resolve([given]), layers=(), variables={}, file=None)
    for printed in (as_table(settings), as_file(settings)):
        assert "ssl-keyfile-password" in printed
        assert "is a secret" in printed or "(a secret)" in printed
        assert '"secret"' not in printed
