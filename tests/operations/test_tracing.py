"""`--otel`: each request is a span, which a collector gets and a handler's own spans are children of."""

from __future__ import annotations

import gzip
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest
from harness import UVICORN, Server, request
from harness.websocket import handshake
from operators import Operators

from bridgehead._native import self_signed

pytest.importorskip("opentelemetry.sdk")
requests = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no spans")

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
PATIENCE = 30.0


class Collector:
    """Takes spans over OTLP/HTTP, and says what it has got."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.posts: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.refusals = 0
        self.refused_with = 503
        self.rejected = 0
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
                said = requests.ExportTraceServiceResponse()
                if collector.rejected:
                    said.partial_success.rejected_spans = collector.rejected
                told = said.SerializeToString()
                self.send_response(collector.refused_with if refuses else 200)
                self.send_header("content-length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.server.server_address[1]}"
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join(PATIENCE)
        self.server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@dataclass(frozen=True)
class Papers:
    """A certificate that vouches for itself, and its key."""

    certificate: str
    key: str

    @classmethod
    def made(cls, folder: Path, name: str) -> Papers:
        files = folder / f"{name}.pem", folder / f"{name}.key"
        for path, text in zip(files, self_signed([name, "127.0.0.1"]), strict=True):
            path.write_text(text)
        return cls(*map(str, files))

    def context(self, believes: str | None = None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        if believes is not None:
            context.load_verify_locations(believes)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@contextmanager
def traced(
    collector: Collector, *options: str, target: str = "traced_app:app", **environ: str
) -> Iterator[Server]:
    asked = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "20",
        "OTEL_SERVICE_NAME": "shop",
        **environ,
    }
    with Server(target, "--otel", "--no-access-log", *options, env=asked) as server:
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


@pytest.mark.parametrize(("answer", "status"), [("accept", 101), ("deny", 401), ("close", 403)])
def test_a_websocket_is_a_span_by_its_route(
    loop: str, collector: Collector, answer: str, status: int
) -> None:
    with traced(collector, "--loop", loop) as server:
        with server.connect(timeout=PATIENCE) as client:
            client.send(handshake(f"/chat/blue?answer={answer}"))
            assert client.read_response().status == status
        [span] = collector.wait(1)
    assert span.name == "GET /chat/{room}"
    seen = values(span)
    assert (seen["http.route"], seen["http.response.status_code"]) == ("/chat/{room}", status)


def test_a_request_without_a_parent_begins_a_trace_and_a_failure_is_an_error(collector: Collector) -> None:
    with traced(collector) as server:
        shown = ask(server, "/current").body.decode()
        ask(server, "/fail")
        with server.connect(timeout=PATIENCE) as client:
            client.send(request("/", method="get"))
            assert client.read_response().status == 501
        one, other, refused = collector.wait(3)
    assert one.span_id.hex() == shown
    assert (one.parent_span_id, one.status.code) == (b"", 0)
    assert one.trace_id != other.trace_id
    assert (other.status.code, values(other)["error.type"]) == (2, "503")
    assert (refused.status.code, values(refused)["error.type"]) == (2, "bad_method")


@pytest.mark.parametrize("name", ["starlette", "fastapi"])
def test_spans_that_a_framework_makes_by_a_requests_head_are_below_ours(
    collector: Collector, name: str
) -> None:
    pytest.importorskip("starlette.middleware.opentelemetry")
    with traced(collector, target=f"traced_framework_app:{name}") as server:
        alone = ask(server, "/").json()
        inside = ask(server, "/", f"00-{TRACE}-{PARENT}-01", tracestate="a=1").json()
        one, other = collector.wait(2)
    for told, span in ((alone, one), (inside, other)):
        assert (told["trace"], told["parent"]) == (span.trace_id.hex(), span.span_id.hex())
    assert (one.parent_span_id, other.parent_span_id.hex(), other.trace_id.hex()) == (b"", PARENT, TRACE)
    assert (alone["state"], inside["state"]) == ("", "a=1")


def test_a_head_names_our_span_once_and_has_a_state_only_with_the_trace_that_it_is_of(
    collector: Collector,
) -> None:
    other = TRACE[::-1]
    with traced(collector) as server:
        followed = ask(server, "/named", f"00-{TRACE}-{PARENT}-01", tracestate="a=1").json()
        begun = ask(server, "/named", "nonsense", tracestate="a=1").json()
        twice = ask(server, "/named", f"00-{TRACE}-{PARENT}-01", Traceparent=f"00-{other}-{PARENT}-01")
        dropped = ask(server, "/named", f"00-{TRACE}-{PARENT}-00").json()
        spans = collector.wait(3)
    named = [f"traceparent: 00-{span.trace_id.hex()}-{span.span_id.hex()}-01" for span in spans]
    assert followed == [named[0], "tracestate: a=1"]
    assert (begun, twice.json()) == ([named[1]], [named[2]])
    assert len(dropped) == 1
    assert dropped[0].startswith(f"traceparent: 00-{TRACE}-")
    assert dropped[0].endswith("-00")
    assert PARENT not in dropped[0]


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


def test_spans_go_by_tls_to_a_collector_whose_certificate_is_known(tmp_path: Path) -> None:
    theirs, ours = Papers.made(tmp_path, "collector"), Papers.made(tmp_path, "server")
    # Of all that a client may be shown, each way once.
    believed = {"OTEL_EXPORTER_OTLP_CERTIFICATE": theirs.certificate}
    shown = {
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": ours.certificate,
        "OTEL_EXPORTER_OTLP_CLIENT_KEY": ours.key,
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    }
    with Collector(theirs.context(believes=ours.certificate)) as collector:
        with traced(collector, **believed, **shown) as server:
            ask(server, "/current")
            collector.wait(1)
        assert {name.lower(): value for name, value in collector.headers[0].items()}[
            "content-encoding"
        ] == "gzip"
    with (
        Collector(theirs.context()) as collector,
        traced(collector, SSL_CERT_FILE=theirs.certificate) as server,
    ):
        ask(server, "/current")
        collector.wait(1)


def test_a_collector_whose_certificate_is_not_known_gets_nothing_and_that_is_told_once(
    tmp_path: Path,
) -> None:
    papers = [Papers.made(tmp_path, name) for name in ("collector", "other")]
    with (
        Collector(papers[0].context()) as collector,
        traced(collector, SSL_CERT_FILE=papers[1].certificate) as server,
    ):
        ask(server, "/current")
        line = server.wait_line("Spans cannot be sent to https://127.0.0.1:", timeout=PATIENCE)
        assert "certificate" in line
        server.signal(signal.SIGKILL)  # it would try for a while
        server.wait_exit()
        assert collector.posts == []
        assert server.stderr.count("Spans cannot be sent") == 1


def test_a_collector_that_is_away_is_told_of_once_and_once_more_when_it_is_back(
    collector: Collector,
) -> None:
    collector.refusals = 2
    with traced(collector, "--admin", "127.0.0.1:0", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="1") as server:
        for _ in range(3):
            ask(server, "/current")
        line = server.wait_line("Spans cannot be sent to ", timeout=PATIENCE)
        assert f"{collector.url}: it answered 503 Service Unavailable" in line
        server.wait_line(f"Spans are sent to {collector.url} again; 0 were lost", timeout=PATIENCE)
        collector.wait(3)
        operators = Operators(server)
        operators.until(lambda: operators.samples()["bridgehead_spans_exported_total"] == 3)
        assert operators.status()["total"]["spans"] == {"exported": 3, "lost": 0}
        assert server.stderr.count("Spans ") == 2


def test_spans_that_nobody_has_are_counted_by_the_reason(collector: Collector) -> None:
    def lost(reason: str) -> float:
        return operators.samples()[f'bridgehead_spans_lost_total{{reason="{reason}"}}']

    collector.refusals, collector.refused_with = 1, 401
    tight = {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "1"}
    with traced(collector, "--admin", "127.0.0.1:0", **tight) as server:
        operators = Operators(server)
        ask(server, "/current")
        operators.until(lambda: lost("refused") == 1)
        collector.rejected = 1
        ask(server, "/current")
        operators.until(lambda: lost("refused") == 2)
        assert len(collector.wait(1)) == 1
        # While one is tried again, one waits, and the others find no room.
        collector.refusals, collector.refused_with = 1000, 503
        for _ in range(4):
            ask(server, "/current")
        operators.until(lambda: lost("queue_full") >= 2)
        operators.until(lambda: lost("unreachable") >= 1)


def test_a_collector_that_never_answers_does_not_hold_the_exit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.listen()
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1000",
            "OTEL_BSP_SCHEDULE_DELAY": "20",
        }
        with Server("traced_app:app", "--otel", "--no-access-log", env=environ) as server:
            for _ in range(5):
                ask(server, "/current")
            server.stop()
            assert "5 spans were not sent to http://127.0.0.1:" in server.stderr


def test_spans_that_nobody_takes_are_told_of_at_an_end_that_does_not_wait_for_who_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        place = f"http://127.0.0.1:{bound.getsockname()[1]}"
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": place,
        "OTEL_BSP_SCHEDULE_DELAY": "20",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "600000",
    }
    with Server("traced_app:app", "--otel", "--no-access-log", env=environ) as server:
        for _ in range(50):
            ask(server, "/current")
        server.wait_line(f"Spans cannot be sent to {place}: ", timeout=PATIENCE)
        # One after the other they would be tried for three minutes.
        server.stop()
        assert f"50 spans were not sent to {place}" in server.stderr


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
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://collector.example:4318"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "brotli"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
    ],
)
def test_what_cannot_be_followed_ends_the_start(name: str, value: str) -> None:
    with Server("traced_app:app", "--otel", env={name: value}, ready=False) as server:
        assert server.wait_exit() == 3
        assert name in server.stderr


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        (
            {"OTEL_EXPORTER_OTLP_CERTIFICATE": "nowhere.pem"},
            "check the path of OTEL_EXPORTER_OTLP_CERTIFICATE",
        ),
        ({"SSL_CERT_FILE": "nowhere.pem", "SSL_CERT_DIR": "nowhere"}, "this machine believes no authority"),
        ({"OTEL_EXPORTER_OTLP_CLIENT_KEY": "our.key"}, "belong together"),
    ],
)
def test_a_certificate_that_is_not_there_ends_the_start(environ: dict[str, str], told: str) -> None:
    asked = {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example:4318", **environ}
    with Server("traced_app:app", "--otel", env=asked, ready=False) as server:
        assert server.wait_exit() == 3
        assert told in server.stderr
