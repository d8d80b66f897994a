"""Handlers for the tests of TLS.

Run by itself: `serve tls_app:app --ssl-self-signed`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

from kit import Receive, Routes, Scope, Send, answer, answer_json, end, more, option, read_body, start

app = routes = Routes()


@routes.at("tls")
async def show_tls(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(send, {"scheme": scope["scheme"], "tls": scope["extensions"].get("tls")})


@routes.at("spoil")
async def change_what_it_was_told(scope: Scope, receive: Receive, send: Send) -> None:
    told = scope["extensions"]["tls"]
    told["client_cert_chain"].append("nobody's")
    told["client_cert_name"] = "nobody"
    await answer_json(send, told)


@routes.at("echo")
async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        body = await read_body(receive)
    except EOFError:
        routes.note("truncated", True)
        return
    await answer(send, body)


@routes.at("chunks")
async def chunks(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    for _ in range(int(option(scope, "count"))):
        await more(send, b"c" * int(option(scope, "size")))
    await end(send)


@routes.at("endless")
async def until_the_client_is_gone(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    try:
        while True:
            await more(send, b"e" * 50_000)
    finally:
        routes.note("gone", True)


@routes.at("paced")
async def one_piece_and_the_next_by_the_bell(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    await more(send, b"first")
    await routes.wait_bell(option(scope, "name"))
    await end(send, b"second")
