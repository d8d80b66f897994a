"""`--otel`: each request is a span, which a collector gets and a handler's own spans are children of."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from harness import UVICORN, Server, request

pytest.importorskip("opentelemetry.sdk")
requests = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no spans")

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
PATIENCE = 30.0


class Collector:
    """Takes spans over OTLP/HTTP, and says what it has got."""

    def __init__(self) -> None:
        self.posts: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.refusals = 0
        self.came = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                with collector.came:
                    refuses = collector.refusals > 0
                    collector.refusals -= refuses
                    if not refuses:
                        post = requests.ExportTraceServiceRequest.FromString(body)
                        collector.posts.append((self.path, post))
                        collector.headers.append(dict(self.headers))
                    collector.came.notify_all()
                self.send_response(503 if refuses else 200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def spans(self) -> list[Any]:
        groups = [group for _, post in self.posts for group in post.resource_spans]
        return [span for group in groups for scope in group.scope_spans for span in scope.spans]

    def wait(self, number: int) -> list[Any]:
        deadline = time.monotonic() + PATIENCE
        with self.came:
            while len(self.spans()) < number:
                assert self.came.wait(deadline - time.monotonic()), f"{len(self.spans())} of {number}"
        return self.spans()


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.server.shutdown()
    collector.thread.join(PATIENCE)
    collector.server.server_close()


@contextmanager
def traced(collector: Collector, *options: str, **environ: str) -> Iterator[Server]:
    asked = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "20",
        "OTEL_SERVICE_NAME": "shop",
        **environ,
    }
    with Server("traced_app:app", "--otel", "--no-access-log", *options, env=asked) as server:
        yield server


def values(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def ask(server: Server, target: str, traceparent: str | None = None, **headers: str) -> Any:
    named = [("traceparent", traceparent)] if traceparent else []
    with server.connect(timeout=PATIENCE) as client:
        client.send(request(target, headers=[*named, *headers.items()]))
        return client.read_response()


def test_a_request_is_a_span_by_the_conventions_and_the_handlers_spans_are_its_children(
    loop: str, collector: Collector
) -> None:
    with traced(collector, "--loop", loop) as server:
        told = ask(server, "/work?x=1", f"00-{TRACE}-{PARENT}-01", tracestate="a=1").json()
        [span] = collector.wait(1)
    assert (told["trace"], told["state"]) == (TRACE, "a=1")
    assert told["parent"] == span.span_id.hex()
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.trace_state) == (TRACE, PARENT, "a=1")
    assert (span.name, span.kind) == ("GET /work/{what}", 2)
    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    seen = values(span)
    expected = {
        "http.request.method": "GET",
        "http.route": "/work/{what}",
        "http.response.status_code": 200,
        "url.path": "/work",
        "url.query": "x=1",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "client.address": "127.0.0.1",
    }
    assert {name: seen.get(name) for name in expected} == expected
    [(path, post)] = collector.posts
    assert path == "/v1/traces"
    resource = {each.key: each.value.string_value for each in post.resource_spans[0].resource.attributes}
    assert resource["service.name"] == "shop"


def test_a_request_without_a_parent_begins_a_trace_and_a_failure_is_an_error(collector: Collector) -> None:
    with traced(collector) as server:
        shown = ask(server, "/current").body.decode()
        ask(server, "/fail")
        one, other = collector.wait(2)
    assert one.span_id.hex() == shown
    assert (one.parent_span_id, one.status.code) == (b"", 0)
    assert one.trace_id != other.trace_id
    assert (other.status.code, values(other)["error.type"]) == (2, "503")


def test_what_its_client_does_not_keep_is_not_exported_and_is_no_more_kept_inside(
    collector: Collector,
) -> None:
    with traced(collector) as server:
        told = ask(server, "/work", f"00-{TRACE}-{PARENT}-00").json()
        assert (told["trace"], told["recorded"]) == (TRACE, False)
        ask(server, "/fail?status=204")
        [span] = collector.wait(1)
        server.stop()
    assert values(span)["http.response.status_code"] == 204
    assert len(collector.spans()) == 1


def test_the_sampler_and_headers_are_those_of_the_environment(collector: Collector) -> None:
    environ = {"OTEL_TRACES_SAMPLER": "always_off", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x"}
    with traced(collector, **environ) as server:
        ask(server, "/current", f"00-{TRACE}-{PARENT}-01")
        server.stop()
    assert collector.posts == []
    environ["OTEL_TRACES_SAMPLER"] = "always_on"
    with traced(collector, **environ) as server:
        ask(server, "/current")
        collector.wait(1)
    assert {name.lower(): value for name, value in collector.headers[0].items()}[
        "authorization"
    ] == "Bearer x"


def test_a_collector_that_is_busy_is_asked_again_and_what_is_left_is_sent_at_the_end(
    collector: Collector,
) -> None:
    collector.refusals = 1
    with traced(collector, OTEL_BSP_SCHEDULE_DELAY="600000") as server:
        for _ in range(3):
            ask(server, "/current")
        server.stop()
    assert len(collector.wait(3)) == 3


def test_a_collector_that_is_not_there_costs_nobody_anything(collector: Collector) -> None:
    environ = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "200",
    }
    with traced(collector, **environ) as server:
        assert [ask(server, "/current").status for _ in range(5)] == [200] * 5
        server.stop()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
    ],
)
def test_what_cannot_be_followed_ends_the_start(name: str, value: str) -> None:
    with Server("traced_app:app", "--otel", env={name: value}, ready=False) as server:
        assert server.wait_exit() == 3
        assert name in server.stderr
