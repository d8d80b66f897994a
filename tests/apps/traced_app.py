"""Traces with OpenTelemetry's own SDK inside its handlers, and says which trace they are a part of.

Run it: `serve traced_app:app --otel`.
"""

# ruff: noqa: ARG001 - ASGI decides which arguments a handler has
from __future__ import annotations

import asyncio
from types import SimpleNamespace

from kit import Receive, Routes, Scope, Send, answer, answer_json, option
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

app = Routes()
ended: list[ReadableSpan] = []


class Keeps(SpanExporter):
    """What it is given."""

    def export(self, spans: object) -> SpanExportResult:
        ended.extend(spans)  # type: ignore[arg-type]
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Keeps()))
tracer = provider.get_tracer("test")


@app.at("work")
async def work(scope: Scope, receive: Receive, send: Send) -> None:
    """A span of the handler's own, over a suspension; its numbers are the answer."""
    scope["route"] = SimpleNamespace(path="/work/{what}")
    with tracer.start_as_current_span("work") as span:
        await asyncio.sleep(0)
        own = span.get_span_context()
    parent = getattr(span, "parent", None)  # one that is not kept has none
    await answer_json(
        send,
        {
            "trace": f"{own.trace_id:032x}",
            "parent": f"{parent.span_id:016x}" if parent else None,
            "state": parent.trace_state.to_header() if parent else None,
            "recorded": span.is_recording() or any(each.name == "work" for each in ended),
        },
    )


@app.at("current")
async def current(scope: Scope, receive: Receive, send: Send) -> None:
    """The number of the span in whose context the handler runs."""
    await answer(send, f"{trace.get_current_span().get_span_context().span_id:016x}".encode())


@app.at("named")
async def named(scope: Scope, receive: Receive, send: Send) -> None:
    """What the request's head says of its trace."""
    names = {b"traceparent", b"tracestate"}
    await answer_json(
        send, [f"{name.decode()}: {value.decode()}" for name, value in scope["headers"] if name in names]
    )


@app.at("fail")
async def fail(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, status=int(option(scope, "status", "503")))


@app.at("chat")
async def chat(scope: Scope, receive: Receive, send: Send) -> None:
    """A WebSocket by a route, which `?answer=` accepts, or refuses in one of the two ways."""
    scope["route"] = SimpleNamespace(path="/chat/{room}")
    await receive()
    if option(scope, "answer") == "accept":
        await send({"type": "websocket.accept"})
    elif option(scope, "answer") == "deny":
        await send({"type": "websocket.http.response.start", "status": 401, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b"no"})
        return
    await send({"type": "websocket.close"})
