"""`--compat uvicorn`: its defaults, and how they rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Server, request

from bridgehead.cli import read_config
from bridgehead.config import OPTIONS, Config
from bridgehead.print_config import as_table
from bridgehead.quantities import LONGEST_SECONDS
from bridgehead.settings import read_settings
from bridgehead.sources import Given
from bridgehead.uvicorn_defaults import UVICORN

# Off by themselves, or with nothing in uvicorn that they could be like.
AS_THEY_ARE = {
    "worker_lifetime",
    "worker_lifetime_jitter",
    "worker_max_rss",
    *("pidfile", "user", "group", "umask", "control_socket", "admin", "health_path"),
    *("slow_step", "loop_debug", "otel", "http1_early_hints"),
    *("runtime", "task_impl", "bind", "insecure_bind", "pathsend", "request_id", "reload_poll", "compat"),
    *("redirect_https", "ssl_self_signed", "ssl_min_version", "ssl_crl", "ssl_ciphers"),
    *("ws_idle_timeout", "ws_lifetime", "log_format", "access_log_format"),
    *("timeout_request", "cancel_on_disconnect"),
    *("forwarded_headers", "proxy_protocol", "proxy_protocol_allow_ips"),
    "timeout_queue",  # for a queue that there is not
    *("http2_ping_interval", "http2_ping_timeout"),  # of HTTP/2, which is off
    "limit_connection_requests",
    *("static", "static_fallback", "static_max_age", "limit_static"),
    *("compress", "compress_min_size", "compress_types"),
}


def test_each_option_that_differs_from_uvicorn_has_its_default_or_a_reason() -> None:
    differing = {option.name for option in OPTIONS if option.differs}
    assert differing == {*UVICORN, *AS_THEY_ARE}
    assert not AS_THEY_ARE & UVICORN.keys()


def test_the_defaults_are_those_of_the_uvicorn_that_is_installed() -> None:
    uvicorn = pytest.importorskip("uvicorn")
    theirs = vars(uvicorn.Config("x:app", log_config=None))
    ours = Config("x:app", compat="uvicorn")
    checked = {
        option.name: (getattr(ours, option.name), theirs[option.name])
        for option in OPTIONS
        if option.name in theirs and option.name in UVICORN
    }
    # None is without an end there, and is our word for a default.
    assert checked.pop("timeout_graceful_shutdown") == (LONGEST_SECONDS, None)
    assert checked.pop("limit_concurrency") == (0, None)
    assert {name for name, (here, there) in checked.items() if here != there} == set()
    assert checked.keys() == {
        *("http2", "limit_max_requests_jitter", "reload_delay"),
        *("timeout_keep_alive", "timeout_worker_healthcheck"),
    }


def test_what_is_given_outranks_it_wherever_that_is(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text('compat = "uvicorn"\nlimit-headers = 50\n')
    flags = {"limit_body": Given(value="1k", source="--limit-body")}
    environ = {"BRIDGEHEAD_TIMEOUT_HEADER": "3"}
    file = Given(value="some.toml", source="--config")
    config = read_settings(flags, environ, tmp_path, file).config
    assert (config.limit_body, config.timeout_header, config.limit_headers) == (1024, 3.0, 50)
    assert (config.timeout_keep_alive, config.min_rate, config.http2) == (5.0, 0, False)


def test_the_configuration_is_shown_with_where_each_value_is_from() -> None:
    flags = {
        "compat": Given(value="uvicorn", source="--compat"),
        "timeout_body": Given(value="9", source="--timeout-body"),
    }
    lines = {line.split()[0]: line for line in as_table(read_settings(flags, {}, Path(), None)).splitlines()}
    assert lines["timeout-keep-alive"].split()[1:] == ["5", "--compat", "uvicorn"]
    assert lines["timeout-body"].split()[1:] == ["9", "--timeout-body"]
    assert lines["port"].split()[1:] == ["8000", "default"]


def test_a_program_has_it_as_well() -> None:
    assert Config("x:app", compat="uvicorn").limit_body == 0
    assert Config("x:app", compat="uvicorn", limit_queue=5).limit_queue == 5
    assert Config("x:app", compat="uvicorn", limit_connections=None).limit_connections == 0
    assert Config("x:app", compat="uvicorn", timeout_keep_alive=75).timeout_keep_alive == 75
    assert Config("x:app").timeout_keep_alive == 75
    assert read_config(["x:app", "--compat", "uvicorn"], {}).timeout_keep_alive == 5


def test_a_server_with_it_takes_what_uvicorn_does_and_ends() -> None:
    with Server("wire_app:app", "--compat", "uvicorn") as server:
        client = server.connect()
        client.send(request("/echo", headers=[(f"x-{number}", "y") for number in range(500)]))
        assert client.read_response().status == 200
        client.send(request("/echo", headers=[("x", "y" * 60_000)]))
        assert client.read_response().status == 200
        server.stop()
