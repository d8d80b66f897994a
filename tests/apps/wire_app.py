"""Handlers for the tests of HTTP/1.1 on the wire.

Run by itself: `serve wire_app:app`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
from pathlib import Path

from kit import (
    Message,
    Receive,
    Routes,
    Scope,
    Send,
    answer,
    answer_json,
    end,
    more,
    option,
    read_body,
    start,
)

app = routes = Routes()

MEBIBYTE = 1024 * 1024


@routes.at("echo")
async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        body = await read_body(receive)
    except EOFError:
        routes.note("truncated", scope["path"])
        return
    await answer(send, body)


@routes.at("say")
async def say(scope: Scope, receive: Receive, send: Send) -> None:
    """A redirect to whatever the client says."""
    said = await read_body(receive)
    await send({"type": "http.response.start", "status": 302, "headers": [(b"location", said)]})
    await send({"type": "http.response.body"})


@routes.at("scope")
async def show_scope(scope: Scope, receive: Receive, send: Send) -> None:
    await answer_json(
        send,
        {
            "method": scope["method"],
            "path": scope["path"],
            "raw_path": scope["raw_path"].decode("latin-1"),
            "query_string": scope["query_string"].decode("latin-1"),
            "http_version": scope["http_version"],
            "client": scope["client"],
            "scheme": scope["scheme"],
            "headers": [
                [name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]
            ],
        },
    )


@routes.at("noread")
async def answer_without_reading(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"not read")


@routes.at("early")
async def answer_with_the_first_piece(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, (await receive())["body"])


@routes.at("late")
async def answer_when_rung(scope: Scope, receive: Receive, send: Send) -> None:
    routes.note(option(scope, "name") + "-began", True)
    await routes.wait_bell(option(scope, "name"))
    await answer(send, b"late")


@routes.at("hinted")
async def hint_and_answer_when_rung(scope: Scope, receive: Receive, send: Send) -> None:
    """Tells what is offered, and sends hints whether it is or not; an error of that is the answer."""
    routes.note(option(scope, "name") + "-offered", "http.response.early_hint" in scope["extensions"])
    links = [b"</a.css>; rel=preload; as=style", b"</b.js>; rel=preload; as=script"]
    try:
        await send({"type": "http.response.early_hint", "links": links})
    except Exception as error:
        await answer(send, f"{type(error).__name__}: {error}".encode())
        return
    await routes.wait_bell(option(scope, "name"))
    await answer(send, b"hinted")


@routes.at("later")
async def answer_after_seconds(scope: Scope, receive: Receive, send: Send) -> None:
    await read_body(receive)
    await asyncio.sleep(float(option(scope, "seconds")))
    await answer(send, option(scope, "say").encode())


@routes.at("declared")
async def declare_another_length(scope: Scope, receive: Receive, send: Send) -> None:
    """Declares `length` bytes, sends `sends` bytes in `parts` messages."""
    sends, parts = int(option(scope, "sends")), int(option(scope, "parts", "1"))
    await start(send, (b"content-length", option(scope, "length").encode()))
    body = b"0123456789" * (sends // 10 + 1)
    step = sends // parts
    try:
        for part in range(parts):
            await more(send, body[part * step : (part + 1) * step])
        await end(send, body[parts * step : sends])
    except OSError:
        routes.note("declared-oserror", True)
        raise


@routes.at("not-modified")
async def declare_the_length_of_what_the_client_has(scope: Scope, receive: Receive, send: Send) -> None:
    """In one message with the end, or in `parts`; with `body` bytes that nobody is to see."""
    await start(send, (b"content-length", b"10"), (b"etag", b'"it"'), status=304)
    for _ in range(int(option(scope, "parts", "1")) - 1):
        await more(send, b"")
    await end(send, b"x" * int(option(scope, "body", "0")))


@routes.at("status")
async def status_with_a_body(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send, (b"x-here", b"yes"), status=int(option(scope, "status")))
    await more(send, b"a body ")
    await end(send, b"where none belongs")


@routes.at("respond")
async def respond_with_headers(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the headers of the query, `name:value` each, in their order."""
    headers = []
    for pair in filter(None, option(scope, "headers").split("|")):
        name, _, value = pair.partition(":")
        headers.append((name.encode(), value.encode()))
    await start(send, *headers)
    await end(send, b"responded")


@routes.at("chunks")
async def chunks_without_a_pause(scope: Scope, receive: Receive, send: Send) -> None:
    count, size = int(option(scope, "count")), int(option(scope, "size"))
    await start(send)
    for _ in range(count):
        await more(send, b"c" * size)
    await end(send)


@routes.at("paced")
async def chunks_by_the_bell(scope: Scope, receive: Receive, send: Send) -> None:
    name = option(scope, "name")
    await start(send)
    await more(send, b"first")
    await routes.wait_bell(name)
    await more(send, b"second")
    await end(send)


@routes.at("upload")
async def count_an_upload_after_the_bell(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads nothing until the bell, then counts bytes without keeping them."""
    name = option(scope, "name")
    routes.note(f"{name}-began", True)
    await routes.wait_bell(name)
    size = 0
    largest = 0
    while True:
        message = await receive()
        assert message["type"] == "http.request", message
        size += len(message.get("body", b""))
        largest = max(largest, len(message.get("body", b"")))
        if not message.get("more_body", False):
            break
    await answer_json(send, {"size": size, "largest": largest})


@routes.at("ready")
async def is_ready(scope: Scope, receive: Receive, send: Send) -> None:
    """What a balancer asks: 503 once the worker has been told to end."""
    ends = scope["extensions"]["bridgehead.shutdown"]["is_set"]()
    await answer(send, status=503 if ends else 200)


@routes.at("collect")
async def collect_messages(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads to the end of the body or of the client, and leaves a note of how it went."""
    messages: list[Message] = []
    routes.note(option(scope, "name") + "-began", True)
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            break
    last = messages[-1]
    body = b"".join(message.get("body", b"") for message in messages)
    summary = {
        "body": body.decode("latin-1"),
        "last": last["type"],
        "complete": last["type"] == "http.request",
    }
    routes.note(option(scope, "name"), summary)
    if last["type"] == "http.request":
        await answer_json(send, summary)


@routes.at("stalled")
async def send_until_stalled(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends until `send()` has not come back for half a second, tells how much that was, then ends."""
    name = option(scope, "name")
    size = int(option(scope, "size"))
    sent = 0
    full = False

    async def pump() -> None:
        nonlocal sent
        while not full and sent < 256 * MEBIBYTE:
            await more(send, b"s" * size)
            sent += size

    await start(send)
    pumping = asyncio.create_task(pump())
    before = -1
    while before != sent and not pumping.done():
        before = sent
        await asyncio.sleep(0.5)
    full = True
    routes.note(name, sent)
    await pumping
    await end(send)
    routes.note(f"{name}-all", sent)


@routes.at("until-cut")
async def send_until_cut_off(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        await start(send)
        while True:
            await more(send, b"s" * 65_536)
    except OSError as error:
        routes.note(option(scope, "name"), type(error).__name__)
        raise


@routes.at("declared-until-gone")
async def send_all_that_is_declared_and_wait_for_the_end(scope: Scope, receive: Receive, send: Send) -> None:
    size = int(option(scope, "size"))
    await start(send, (b"content-length", str(size).encode()))
    await more(send, b"d" * size)
    while (await receive())["type"] != "http.disconnect":
        pass
    routes.note(option(scope, "name"), "gone")


@routes.at("until-gone")
async def send_a_piece_and_wait_for_the_end(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    await more(send, b"a piece")
    while (await receive())["type"] != "http.disconnect":
        pass


@routes.at("work-after")
async def answer_and_work_until_a_file_is_there(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"answered")
    until = Path(option(scope, "until"))
    while not until.exists():
        await asyncio.sleep(0.01)


@routes.at("fail")
async def fail_in_the_middle(scope: Scope, receive: Receive, send: Send) -> None:
    when = option(scope, "when")
    if when == "before":
        raise RuntimeError("failed before the start")
    headers = [(b"content-length", b"100")] if option(scope, "length") else []
    await start(send, *headers)
    if when == "started":
        raise RuntimeError("failed after the start")
    await more(send, b"half of it")
    if option(scope, "name"):
        await routes.wait_bell(option(scope, "name"))
    if when == "return":
        return
    raise RuntimeError("failed in the body")


@routes.at("interim")
async def read_on_the_bell(scope: Scope, receive: Receive, send: Send) -> None:
    """Waits for the bell before its first `receive()`."""
    name = option(scope, "name")
    routes.note(f"{name}-began", True)
    await routes.wait_bell(name)
    body = await read_body(receive)
    await answer(send, body)
