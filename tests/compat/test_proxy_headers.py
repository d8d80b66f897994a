"""`uvicorn.middleware.proxy_headers` as a middleware of one application: whom it believes, and what."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridgehead.compat.uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

PROXY = "127.0.0.1"


def seen(trusted: Any, *headers: tuple[bytes, bytes], kind: str = "http", client: Any = (PROXY, 123)) -> Any:
    """The scheme and the client that the application is told."""
    told: dict[str, Any] = {}

    async def app(scope: Any, *_: Any) -> None:
        told.update(scope)

    scope = {"type": kind, "scheme": kind.replace("websocket", "ws"), "client": client, "headers": [*headers]}
    nobody: Any = None
    asyncio.run(ProxyHeadersMiddleware(app, trusted)(scope, nobody, nobody))
    return told["scheme"], told["client"]


FORWARDED = ((b"x-forwarded-for", b"1.2.3.4"), (b"x-forwarded-proto", b"https"))


@pytest.mark.parametrize("trusted", [PROXY, "*", "127.0.0.0/8", ["10.0.0.1", PROXY], "10.0.0.1, 127.0.0.1"])
def test_a_trusted_proxy_says_who_the_client_is(trusted: Any) -> None:
    assert seen(trusted, *FORWARDED) == ("https", ("1.2.3.4", 0))


@pytest.mark.parametrize(
    "trusted", ["10.0.0.1", [], "", "127.0.0.2", "nonsense", ["10.0.0.1,127.0.0.1"], [" 127.0.0.1 "]]
)
def test_from_others_nothing_is_taken(trusted: Any) -> None:
    assert seen(trusted, *FORWARDED) == ("http", (PROXY, 123))


def test_the_nearest_that_is_not_trusted_is_the_client() -> None:
    chain = (b"x-forwarded-for", b"9.9.9.9, 1.2.3.4:80, 10.0.0.7"), (b"x-forwarded-for", b"10.0.0.8")
    assert seen("127.0.0.1,10.0.0.0/8", *chain)[1] == ("1.2.3.4", 80)
    assert seen("*", *chain)[1] == ("9.9.9.9", 0)
    hidden = (b"x-forwarded-for", b"1.2.3.4, 10.0.0.1:0")
    assert seen("127.0.0.1,10.0.0.0/8", hidden)[1] == ("1.2.3.4", 0)
    unread = (b"x-forwarded-for", b"1.2.3.4, 10.0.0.1:")
    assert seen("127.0.0.1,10.0.0.0/8,", unread)[1] == ("10.0.0.1:", 0)


@pytest.mark.parametrize(
    ("written", "client"),
    [
        (b"[2001:db8::1]:443", ("2001:db8::1", 443)),
        (b"2001:db8::1", ("2001:db8::1", 0)),
        (b"1.2.3.4:99999", ("1.2.3.4:99999", 0)),
        (b"1.2.3.4:+8", ("1.2.3.4:+8", 0)),
        (b"1.2.3.4:" + b"9" * 5000, ("1.2.3.4:" + "9" * 5000, 0)),
        (b"1.2.3.4:0", ("1.2.3.4", 0)),
        (b"1.2.3.4:00080", ("1.2.3.4", 80)),
        (b"1.2.3.4:", ("1.2.3.4:", 0)),
        (b"host.test:80", ("host.test", 80)),
        (b"_x:80", ("_x", 80)),
        (b"[::1]x", ("[::1]x", 0)),
        (b"[::1", ("[::1", 0)),
        (b"[::1]:x", ("::1", 0)),
        (b"[]", (PROXY, 123)),
        (b":80", (PROXY, 123)),
        (b"unix:", ("unix:", 0)),
        (b"", (PROXY, 123)),
    ],
)
def test_a_client_may_be_written_with_a_port(written: bytes, client: Any) -> None:
    assert seen(PROXY, (b"x-forwarded-for", written))[1] == client


def test_a_websocket_has_its_own_schemes_and_an_odd_word_changes_nothing() -> None:
    assert seen(PROXY, (b"x-forwarded-proto", b"https"), kind="websocket")[0] == "wss"
    assert seen(PROXY, (b"x-forwarded-proto", b"gopher"))[0] == "http"


def test_a_client_without_an_address_is_trusted_by_a_star_alone() -> None:
    assert seen("*", *FORWARDED, client=None)[1] == ("1.2.3.4", 0)
    assert seen(PROXY, *FORWARDED, client=None)[1] is None
