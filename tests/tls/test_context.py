"""`config.ssl`: what a program sets on it holds for handshakes, or is refused."""

from __future__ import annotations

import pickle
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from harness import UVICORN
from harness.embedded import InThread, port_of
from secured import Secured, file, trusting

from bridgehead import Config, Server, StartError

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn's is a context of Python's")

FILES: dict[str, Any] = {"ssl_certfile": file("server.pem"), "ssl_keyfile": file("server.key")}
OLD = pytest.mark.filterwarnings("ignore:ssl.OP_NO:DeprecationWarning")


async def app(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"here"})


def configured(**options: Any) -> Config:
    return Config(app, port=0, lifespan="off", log_config=None, **FILES, **options)


def is_let_in(server: Server, *, client: str = "", version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bool:
    try:
        with Secured(
            port_of(server),
            trusting(client=client, minimum_version=version, maximum_version=version),
        ) as secured:
            return secured.ask("/").status == 200
    except (OSError, AssertionError, EOFError):
        return False


@OLD
@pytest.mark.parametrize(
    ("tell", "settings"),
    [
        (lambda context: setattr(context, "verify_mode", ssl.CERT_REQUIRED), {"ssl_cert_reqs": 2}),
        (lambda context: setattr(context, "verify_mode", 1), {"ssl_cert_reqs": 1}),
        (
            lambda context: setattr(context, "minimum_version", ssl.TLSVersion.TLSv1_3),
            {"ssl_min_version": "1.3"},
        ),
        (lambda context: setattr(context, "maximum_version", ssl.TLSVersion.TLSv1_2), {"ssl_version": 5}),
        (
            lambda context: setattr(context, "options", context.options | ssl.OP_NO_TLSv1_2),
            {"ssl_min_version": "1.3"},
        ),
        (
            lambda context: setattr(
                context, "options", context.options | ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_3
            ),
            {"ssl_version": 5, "ssl_min_version": "1.2"},
        ),
        (lambda context: context.set_ciphers("ECDHE+AESGCM"), {"ssl_ciphers": "ECDHE+AESGCM"}),
        (
            lambda context: context.load_verify_locations(file("authority.pem")),
            {"ssl_ca_certs": file("authority.pem")},
        ),
        (lambda context: context.set_alpn_protocols(["http/1.1"]), {"http2": False}),
        (lambda context: setattr(context, "check_hostname", False), {}),
        (lambda context: setattr(context, "sni_callback", None), {}),
    ],
)
def test_what_is_set_on_it_is_an_option(tell: Callable[[Any], None], settings: dict[str, Any]) -> None:
    config = configured()
    config.load()
    tell(config.ssl)
    assert {name: getattr(config, name) for name in settings} == settings


@OLD
@pytest.mark.parametrize(
    ("tell", "says"),
    [
        (lambda context: setattr(context, "minimum_version", ssl.TLSVersion.TLSv1_1), "ssl_min_version"),
        (
            lambda context: setattr(context, "maximum_version", ssl.TLSVersion.TLSv1_1),
            "1.2 and 1.3 are spoken",
        ),
        (lambda context: setattr(context, "options", context.options | ssl.OP_NO_TICKET), "OP_NO_TICKET"),
        (lambda context: setattr(context, "verify_flags", ssl.VERIFY_CRL_CHECK_LEAF), "ssl_crl"),
        (lambda context: setattr(context, "check_hostname", True), "check_hostname"),
        (lambda context: setattr(context, "sni_callback", print), "several files as ssl_certfile"),
        (lambda context: setattr(context, "keylog_filename", "keys"), "keylog_filename"),
        (lambda context: setattr(context, "num_tickets", 0), "num_tickets"),
        (lambda context: setattr(context, "no_such_thing", 1), "no_such_thing"),
        (lambda context: context.load_verify_locations(cadata="-----"), "ssl_ca_certs"),
        (lambda context: context.set_alpn_protocols(["spdy"]), "spdy"),
    ],
)
def test_what_cannot_hold_is_refused_with_what_to_set_instead(tell: Callable[[Any], None], says: str) -> None:
    with pytest.raises(StartError, match=says):
        tell(configured().ssl)


def test_what_it_does_not_have_is_said_by_name() -> None:
    context: Any = configured().ssl
    assert not hasattr(context, "wrap_socket")
    assert (context.check_hostname, context.sni_callback) == (False, None)
    with pytest.raises(AttributeError, match="ssl_ca_certs"):
        context.load_default_certs()
    with pytest.raises(FileNotFoundError):
        context.load_verify_locations("nowhere.pem")


def test_a_context_of_pythons_is_refused_wherever_it_is_given() -> None:
    config = configured()
    for chosen in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), None):
        with pytest.raises(StartError, match="name files by ssl_certfile"):
            config.ssl = chosen
    with pytest.raises(StartError, match="TLS is spoken by rustls"):
        config.ssl_context_factory = lambda _, default: default()
    config.ssl, config.ssl_context_factory = config.ssl, None
    plain = Config(app, log_config=None)
    plain.ssl = None
    with pytest.raises(StartError, match="rustls"):
        plain.ssl = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def test_it_is_one_and_goes_to_another_process_with_its_configuration() -> None:
    config = Config("main:app", log_config=None, **FILES)
    assert config.ssl is config.ssl
    there = pickle.loads(pickle.dumps(config))
    there.ssl.verify_mode = ssl.CERT_REQUIRED
    assert (there.ssl_cert_reqs, config.ssl_cert_reqs) == (2, 0)


def test_who_has_no_certificate_is_not_let_in_once_it_is_demanded_after_loading() -> None:
    config = configured()
    config.load()
    assert config.ssl is not None
    config.ssl.verify_mode = ssl.CERT_REQUIRED
    config.ssl.load_verify_locations(file("authority.pem"))
    with InThread(Server(config)) as running:
        assert not is_let_in(running.server)
        assert is_let_in(running.server, client="client-chain")


def test_the_lowest_version_that_is_set_after_loading_holds_and_cannot_be_changed_while_it_is_served() -> (
    None
):
    config = configured()
    config.load()
    assert config.ssl is not None
    config.ssl.minimum_version = ssl.TLSVersion.TLSv1_3
    with InThread(Server(config)) as running:
        assert not is_let_in(running.server, version=ssl.TLSVersion.TLSv1_2)
        assert is_let_in(running.server)
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_3  # as it is
        with pytest.raises(StartError, match="already"):
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2


def test_an_option_of_tls_that_is_assigned_after_loading_holds() -> None:
    config = configured()
    config.load()
    config.ssl_min_version = "1.3"
    with InThread(Server(config)) as running:
        assert not is_let_in(running.server, version=ssl.TLSVersion.TLSv1_2)


def test_a_demand_without_authorities_ends_the_start() -> None:
    config = configured()
    config.load()
    assert config.ssl is not None
    config.ssl.verify_mode = ssl.CERT_REQUIRED
    with pytest.raises(SystemExit) as end:
        Server(config).run()
    assert end.value.code == 3
