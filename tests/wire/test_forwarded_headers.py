"""`X-Forwarded-Host`, `-Port`, `-Prefix`, `Forwarded`: taken where that is asked for, from who is trusted."""

from __future__ import annotations

from typing import Any

import pytest
from harness import UVICORN, Client, Server, request

from bridgehead.config import Config
from bridgehead.errors import StartError

pytestmark = pytest.mark.skipif(UVICORN, reason="these are Bridgehead's own")
TARGET = "proxied_app:app"
LOCAL = "127.0.0.1"
EVERY = [
    ("X-Forwarded-For", "1.2.3.4"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "shop.test"),
    ("X-Forwarded-Port", "8443"),
    ("X-Forwarded-Prefix", "/shop"),
    ("Forwarded", "for=5.6.7.8;proto=wss;host=standard.test"),
]


def served(*options: str, trusted: str = LOCAL) -> Server:
    return Server(TARGET, "--forwarded-allow-ips", trusted, *options)


def asked(client: Client, *headers: tuple[str, str], target: str = "/items?a=b") -> dict[str, Any]:
    client.send(request(target, headers=list(headers)))
    scope: dict[str, Any] = client.read_response().json()
    return scope


def test_only_what_is_asked_for_is_taken() -> None:
    with served() as server, server.connect() as client:
        scope = asked(client, *EVERY)
        assert (scope["client"][0], scope["scheme"], scope["host"]) == ("1.2.3.4", "https", "test")
        assert (scope["root_path"], scope["path"]) == ("", "/items")
    with served("--forwarded-headers", "host,prefix") as server, server.connect() as client:
        scope = asked(client, *EVERY)
        assert (scope["client"][0], scope["scheme"], scope["host"]) == (LOCAL, "http", "shop.test")
        assert (scope["root_path"], scope["path"], scope["raw_path"]) == (
            "/shop",
            "/shop/items",
            "/shop/items",
        )
    with served("--forwarded-headers", "forwarded,port") as server, server.connect() as client:
        scope = asked(client, *EVERY)
        assert (scope["client"], scope["scheme"]) == (["5.6.7.8", 0], "wss")
        assert (scope["host"], scope["root_path"]) == ("standard.test:8443", "")


def test_nothing_is_taken_from_who_is_not_trusted() -> None:
    every = "for,proto,host,port,prefix"
    with served("--forwarded-headers", every, trusted="10.0.0.1") as server, server.connect() as client:
        scope = asked(client, *EVERY)
        assert (scope["client"][0], scope["scheme"], scope["host"]) == (LOCAL, "http", "test")
        assert scope["root_path"] == ""


def test_the_host_that_is_seen_is_the_only_one() -> None:
    with served("--forwarded-headers", "host") as server, server.connect() as client:
        seen = ("X-Forwarded-Host", "evil.test, shop.test:81")
        for target in ("/items", "http://absolute.test/items"):
            scope = asked(client, seen, target=target)
            assert (scope["host"], scope["hosts"]) == ("shop.test:81", 1)
        client.send(request("/items", version="1.0", host=None, headers=[seen]))
        scope = client.read_response().json()
        assert (scope["host"], scope["hosts"]) == ("shop.test:81", 1)


@pytest.mark.parametrize("host", ["a/b", "user@shop.test", "a b", "", "shop.test:x", "[::1"])
def test_what_could_not_be_a_host_is_none(host: str) -> None:
    with served("--forwarded-headers", "host") as server, server.connect() as client:
        assert asked(client, ("X-Forwarded-Host", host))["host"] == "test"


def test_a_prefix_takes_the_place_of_the_root_path_here_and_in_lines() -> None:
    options = ("--forwarded-headers", "prefix", "--root-path", "/own")
    with served(*options) as server, server.connect() as client:
        assert asked(client)["path"] == "/own/items"
        scope = asked(client, ("X-Forwarded-Prefix", "/caf%C3%A9/"))
        assert (scope["root_path"], scope["path"]) == ("/café", "/café/items")
        assert scope["raw_path"] == "/caf%C3%A9/items"
        server.wait_line('"GET /caf%C3%A9/items?a=b HTTP/1.1" 200', stream="stdout")
        scope = asked(client, ("X-Forwarded-Prefix", "/"))
        assert (scope["root_path"], scope["path"], scope["raw_path"]) == ("", "/items", "/items")
        for none in (
            "//evil.test",
            "/%2fevil.test",
            "/a%0d%0aX:y",
            "/a%00",
            "/%5cevil.test",
            "shop",
            "/a?b",
            "",
        ):
            assert asked(client, ("X-Forwarded-Prefix", none))["root_path"] == "/own", none


def test_a_standard_header_that_cannot_be_read_names_nobody() -> None:
    with served("--forwarded-headers", "forwarded") as server, server.connect() as client:
        scope = asked(client, ("Forwarded", 'for="6.6.6.6'), ("Forwarded", "for=1.2.3.4;proto=https"))
        assert (scope["client"], scope["scheme"]) == (["unknown", 0], "http")
        assert asked(client)["client"] == [LOCAL, client.port]
        for nobody in ("proto=https", "for=6.6.6.6, proto=https", "for=6.6.6.6, by=_here"):
            assert asked(client, ("Forwarded", nobody))["client"] == ["unknown", 0], nobody
    trusted = f"{LOCAL},10.0.0.0/8"
    with served("--forwarded-headers", "forwarded", trusted=trusted) as server, server.connect() as client:
        assert asked(client, ("Forwarded", 'for=1.2.3.4, for="10.0.0.1:_gw"'))["client"] == ["1.2.3.4", 0]


def test_a_client_on_a_unix_socket_is_trusted_by_that_word(tmp_path: Any) -> None:
    path = str(tmp_path / "s")
    with served("--uds", path, trusted="unix"), Client(path) as client:
        scope = asked(client, ("X-Forwarded-For", "1.2.3.4, unix:"), ("X-Forwarded-Proto", "https"))
        assert (scope["client"], scope["scheme"]) == (["1.2.3.4", 0], "https")


def test_of_a_list_longer_than_any_chain_nothing_is_believed() -> None:
    pairs = ";".join(f"x{number}=1" for number in range(2_000))
    with (
        served("--forwarded-headers", "forwarded", trusted="127.0.0.1,10.0.0.0/8") as server,
        server.connect() as client,
    ):
        for number, expected in ((100, "10.0.0.1"), (101, "unknown"), (1_200, "unknown")):
            scope = asked(client, ("Forwarded", ",".join(["for=10.0.0.1"] * number)))
            assert scope["client"] == [expected, 0], number
        assert asked(client, ("Forwarded", f"for=1.2.3.4;{pairs}"))["client"] == ["unknown", 0]
        assert asked(client, ("Forwarded", f"for=6.6.6.6;{pairs}, for=1.2.3.4"))["client"] == ["unknown", 0]


def test_two_headers_that_say_the_same_are_refused_at_the_start() -> None:
    assert Config(forwarded_headers="For, PROTO").forwarded_headers == "for,proto"
    with pytest.raises(StartError, match="Forwarded and X-Forwarded-For and X-Forwarded-Host say the same"):
        Config(forwarded_headers="for,host,forwarded")
    with pytest.raises(StartError, match="'hots' is not one of for, proto, host"):
        Config(forwarded_headers="hots")
    with served("--no-proxy-headers", "--forwarded-headers", "for") as server:
        server.wait_line("--forwarded-headers does nothing with --no-proxy-headers.")
