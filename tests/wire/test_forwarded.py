"""`X-Forwarded-For` and `X-Forwarded-Proto`: taken from those who are trusted, as uvicorn takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import UVICORN, Client, Server, has_ipv6, request

from bridgehead.config import Config
from bridgehead.errors import StartError
from bridgehead.forwarded import Trusted, misread, trusted

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = "wire_app:app"
LOCAL = "127.0.0.1"


@contextmanager
def served(*options: str, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    with Server(TARGET, *options, env={"FORWARDED_ALLOW_IPS": "", **(env or {})}) as server:
        yield server


def asked(client: Client, *headers: tuple[str, str]) -> dict[str, Any]:
    client.send(request("/scope", headers=list(headers)))
    scope: dict[str, Any] = client.read_response().json()
    return scope


# Who is trusted, what the headers say, and whom they name: uvicorn gives the same.
LISTS = [
    (LOCAL, ["1.2.3.4"], ["1.2.3.4", 0]),
    (LOCAL, ["1.2.3.4:567"], ["1.2.3.4", 567]),
    (LOCAL, ["6.6.6.6, 1.2.3.4"], ["1.2.3.4", 0]),
    (f"{LOCAL}, 10.0.0.0/8", ["6.6.6.6, 1.2.3.4,10.0.0.3 ,10.9.9.9:77"], ["1.2.3.4", 0]),
    (f"{LOCAL}, 10.0.0.0/8", ["6.6.6.6, 1.2.3.4", "10.0.0.3, 10.9.9.9"], ["1.2.3.4", 0]),
    (f"{LOCAL}, 10.0.0.0/8", ["10.0.0.1:9, 10.0.0.2"], ["10.0.0.1", 9]),
    (f"{LOCAL}, 10.0.0.0/255.0.0.0", ["1.2.3.4, 10.0.0.2"], ["1.2.3.4", 0]),
    (f"{LOCAL}, 10.0.0.1/8", ["1.2.3.4, 10.0.0.2"], ["10.0.0.2", 0]),
    (f"{LOCAL}, 2001:db8::/32", ["1.2.3.4, [2001:DB8::7]:80"], ["1.2.3.4", 0]),
    (f"{LOCAL}, unknown", ["1.2.3.4, unknown"], ["1.2.3.4", 0]),
    (LOCAL, ["2001:DB8::1"], ["2001:DB8::1", 0]),
    (LOCAL, ["[2001:db8::1]:8443"], ["2001:db8::1", 8443]),
    (LOCAL, ["[2001:db8::1"], ["[2001:db8::1", 0]),
    (LOCAL, ["_hidden"], ["_hidden", 0]),
    (LOCAL, ["1.2.3.4:x"], ["1.2.3.4:x", 0]),
    (LOCAL, ["1.2.3.4, "], None),
    (LOCAL, [""], None),
    (f"{LOCAL},", ["6.6.6.6, "], None),
    (f"{LOCAL},", ["1.2.3.4"], ["1.2.3.4", 0]),
    ("::/0", ["1.2.3.4"], None),
    ("::ffff:127.0.0.1, ::ffff:0:0/96", ["1.2.3.4"], None),
    ("127.0.0.2", ["1.2.3.4"], None),
    ("", ["1.2.3.4"], None),
    ("127.0.0.0/8", ["1.2.3.4"], ["1.2.3.4", 0]),
    ("*", ["1.2.3.4, 6.6.6.6"], ["1.2.3.4", 0]),
    ("*", [", 6.6.6.6"], None),
    ("*, 10.0.0.1", ["1.2.3.4"], None),
]


@pytest.mark.parametrize("words", dict.fromkeys(words for words, _, _ in LISTS))
def test_the_client_is_whom_trusted_proxies_name(words: str) -> None:
    with served("--forwarded-allow-ips", words) as server, server.connect() as client:
        for trusted_words, lists, expected in LISTS:
            if trusted_words == words:
                scope = asked(client, *(("X-Forwarded-For", each) for each in lists))
                assert scope["client"] == (expected or [LOCAL, client.port]), (words, lists)
                assert scope["scheme"] == "http"


@pytest.mark.parametrize(
    ("values", "scheme"),
    [
        (["https"], "https"),
        ([" https "], "https"),
        (["wss"], "wss"),
        (["http", "https"], "https"),
        (["https", "ftp"], "http"),
        (["HTTPS"], "http"),
        (["https, http"], "http"),
        ([""], "http"),
    ],
)
def test_the_scheme_is_the_last_that_is_said(values: list[str], scheme: str) -> None:
    with served("--forwarded-allow-ips", LOCAL) as server, server.connect() as client:
        scope = asked(client, *(("X-Forwarded-Proto", each) for each in values))
        assert (scope["scheme"], scope["client"]) == (scheme, [LOCAL, client.port])
        # The next request of the connection is another one.
        assert asked(client)["scheme"] == "http"


def test_the_own_machine_is_trusted_by_default() -> None:
    with Server(TARGET) as server, server.connect() as client:
        assert asked(client, ("X-Forwarded-For", "1.2.3.4"))["client"] == ["1.2.3.4", 0]


def test_a_client_of_ipv6_is_trusted_by_its_address() -> None:
    if not has_ipv6():
        pytest.skip("no IPv6 here")
    with (
        served("--host", "::1", "--forwarded-allow-ips", "::1") as server,
        Client(("::1", server.port)) as client,
    ):
        assert asked(client, ("X-Forwarded-For", "1.2.3.4"))["client"] == ["1.2.3.4", 0]


@pytest.mark.parametrize(("words", "named"), [("*", ["1.2.3.4", 0]), (LOCAL, None)])
def test_a_client_on_a_unix_socket_is_trusted_with_everybody(
    words: str, named: list[Any] | None, tmp_path: Path
) -> None:
    path = str(tmp_path / "s")
    with served("--uds", path, "--forwarded-allow-ips", words), Client(path) as client:
        scope = asked(client, ("X-Forwarded-For", "1.2.3.4"), ("X-Forwarded-Proto", "https"))
        assert (scope["client"], scope["scheme"]) == (named, "https" if named else "http")


def test_the_variable_is_uvicorns_and_the_flag_outranks_it() -> None:
    said = ("X-Forwarded-For", "1.2.3.4")
    for options, variable, expected in (
        ((), "10.0.0.1", None),
        ((), "127.0.0.1", "1.2.3.4"),
        ((), "", None),
        (("--forwarded-allow-ips", LOCAL), "10.0.0.1", "1.2.3.4"),
        (("--no-proxy-headers",), "*", None),
    ):
        with served(*options, env={"FORWARDED_ALLOW_IPS": variable}) as server, server.connect() as client:
            assert asked(client, said)["client"][0] == (expected or LOCAL), (options, variable)


def test_an_access_line_has_the_client_that_was_named() -> None:
    with served("--forwarded-allow-ips", LOCAL) as server, server.connect() as client:
        asked(client, ("X-Forwarded-For", "1.2.3.4"))
        asked(client)
        line = server.wait_line("/scope", stream="stdout")
        assert line == 'INFO:     1.2.3.4:0 - "GET /scope HTTP/1.1" 200 OK\n'
        assert server.wait_line("/scope", stream="stdout", count=2).startswith(
            f"INFO:     {LOCAL}:{client.port} "
        )


@pytest.mark.skipif(UVICORN, reason="uvicorn writes it as it comes")
@pytest.mark.parametrize("options", [(), ("--access-log-format", "{client} {target}")])
def test_no_name_can_forge_an_access_line(options: tuple[str, ...]) -> None:
    with served("--forwarded-allow-ips", LOCAL, *options) as server, server.connect() as client:
        asked(client, ("X-Forwarded-For", 'x" \x80\t\x1b[31m'.replace("\x1b", "")))
        line = server.wait_line("/scope", stream="stdout")
        assert "x\\x22 \\xc2\\x80\\x09[31m:0 " in line


@pytest.mark.skipif(UVICORN, reason="these are Bridgehead's own")
def test_json_lines_and_refusals_have_it_too() -> None:
    options = ("--forwarded-allow-ips", LOCAL, "--log-format", "json", "--log-level", "debug")
    with served(*options) as server, server.connect() as client:
        asked(client, ("X-Forwarded-For", "1.2.3.4"))
        assert json.loads(server.wait_line("/scope", stream="stdout"))["client"] == "1.2.3.4:0"
        client.send(request("/scope", method="TRACE", headers=[("X-Forwarded-For", "1.2.3.4")]))
        assert "Refused a request of 1.2.3.4:0: " in server.wait_line("Refused")


@pytest.mark.skipif(UVICORN, reason="these are Bridgehead's own")
def test_words_are_read_as_uvicorn_reads_them() -> None:
    assert trusted(None, {}) == Trusted(addresses=("127.0.0.1", "::1"))
    assert trusted(None, {"FORWARDED_ALLOW_IPS": "*"}) == Trusted(everybody=True)
    assert trusted("127.0.0.1", {"FORWARDED_ALLOW_IPS": "*"}) == Trusted(addresses=("127.0.0.1",))
    assert trusted("127.0.0.1, ,") == Trusted(addresses=("127.0.0.1",))
    assert trusted("10.0.0.0/8 ,::1,proxy,fe80::1%eth0") == Trusted(
        addresses=("::1",), networks=(("10.0.0.0", 8),), names=("proxy", "fe80::1%eth0")
    )
    assert Config(forwarded_allow_ips=["10.0.0.1", "::1"]).forwarded_allow_ips == "10.0.0.1,::1"  # type: ignore[arg-type]
    with pytest.raises(StartError, match="forwarded_allow_ips: 7 does not say whom to trust"):
        Config(forwarded_allow_ips=7)  # type: ignore[arg-type]


@pytest.mark.skipif(UVICORN, reason="these are Bridgehead's own")
def test_a_word_that_trusts_nobody_by_mistake_is_told() -> None:
    assert misread("127.0.0.1, 10.0.0.0/8,fe80::1%eth0,unix,unix:,unknown,_hidden,") is None
    assert misread("*") is None
    assert misread("") is None
    assert "did you mean 10.0.0.0/8?" in (misread("10.0.0.1/8") or "")
    assert "it is written as" in (misread("ten/8") or "")
    assert "only by itself" in (misread("*,10.0.0.1") or "")
    assert "is no address, and nobody" in (misread("1.2.3.400") or "")
    assert "is no address, and nobody" in (misread("[::1]") or "")
    assert "names are not looked up" in (misread("127.0.0.1,localhost") or "")
    assert "is IPv4 written as IPv6" in (misread("::1,::ffff:127.0.0.1") or "")
    assert "is IPv4 written as IPv6" in (misread("::ffff:a00:0/104") or "")
    assert misread("::/0,::ffff:0:0:0/96,2001:db8::/32") is None
    assert "by the word unix" in (misread("/run/app.sock") or "")
    with served("--forwarded-allow-ips", "10.0.0.1/8") as server:
        server.wait_line("--forwarded-allow-ips: '10.0.0.1/8' is no network, and nobody is trusted by it")
    with served(env={"FORWARDED_ALLOW_IPS": "1.2.3.400"}) as server:
        server.wait_line("FORWARDED_ALLOW_IPS: '1.2.3.400' is no address, and nobody is trusted by it")
