"""Where spans go (`--otel`), by the variables of OpenTelemetry, and the context of a handler's own spans.

Not the spans: Rust makes and exports them (`crates/bridgehead-otel`), and the application's SDK its own.

Invariant: a variable that cannot be followed ends the start or is told of, and is never passed over.
"""

import contextvars
import importlib
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from bridgehead import log
from bridgehead.errors import StartError

Named = tuple[str, int, bool, str]  # the trace in hexadecimal, the span, whether it is kept, the `tracestate`
Attach = Callable[[contextvars.Context, Named], None]

_SAMPLERS = frozenset(
    f"{parent}{name}"
    for parent in ("", "parentbased_")
    for name in ("always_on", "always_off", "traceidratio")
)
_NAMELESS = "unknown_service:bridgehead"
_HINT = "give http://host:port or https://host:port, such as http://localhost:4318"
_CODINGS = {"": False, "none": False, "gzip": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """What Rust needs to know; times are in seconds."""

    endpoint: str
    headers: list[tuple[str, str]]
    timeout: float
    delay: float
    batch: int
    queue: int
    resource: list[tuple[str, str]]
    sampler: tuple[str, str]
    gzip: bool
    authorities: str | None
    identity: tuple[str, str] | None
    attach: Attach | None


def wanted(environ: Mapping[str, str]) -> Spans | None:
    """What OpenTelemetry's variables ask for; nothing where they switch it off."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        log.logger().warning("--otel does nothing: OTEL_SDK_DISABLED is true.")
        return None
    if environ.get("OTEL_TRACES_EXPORTER", "otlp") not in {"otlp", ""}:
        log.logger().warning("--otel does nothing: OTEL_TRACES_EXPORTER is not otlp.")
        return None
    protocol = _of_traces(environ, "PROTOCOL") or "http/protobuf"
    if protocol != "http/protobuf":
        raise StartError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL: {protocol!r} is not spoken", "set it to http/protobuf"
        )
    batch = int(_number(environ, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512))
    endpoint = _endpoint(environ)
    authorities, identity = _secrecy(environ, endpoint)
    return Spans(
        endpoint=endpoint,
        headers=_pairs(_of_traces(environ, "HEADERS"), "OTEL_EXPORTER_OTLP_HEADERS"),
        timeout=_number(environ, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", 0) / 1e3
        or _number(environ, "OTEL_EXPORTER_OTLP_TIMEOUT", 10_000) / 1e3,
        delay=_number(environ, "OTEL_BSP_SCHEDULE_DELAY", 5000) / 1e3,
        batch=batch,
        queue=max(batch, int(_number(environ, "OTEL_BSP_MAX_QUEUE_SIZE", 2048))),
        resource=_resource(environ),
        sampler=_sampler(environ),
        gzip=_compresses(environ),
        authorities=authorities,
        identity=identity,
        attach=_attacher(),
    )


def _of_traces(environ: Mapping[str, str], name: str) -> str:
    return environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")


def _endpoint(environ: Mapping[str, str]) -> str:
    whole = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
    if not whole:
        given = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip() or "http://localhost:4318"
        whole = given.rstrip("/") + "/v1/traces"
    try:
        parts = urlsplit(whole)
        fits = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits:
        raise StartError(f"OTEL_EXPORTER_OTLP_ENDPOINT: {whole!r} is no address for spans", _HINT)
    return whole


def _secrecy(environ: Mapping[str, str], endpoint: str) -> tuple[str | None, tuple[str, str] | None]:
    """Whom we believe about a collector that speaks TLS, and what we show it."""
    names = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
    authorities, certificate, key = (_of_traces(environ, name).strip() or None for name in names)
    if endpoint.startswith("http:"):
        if authorities or certificate or key:
            log.logger().warning("Spans go to %s in the clear: certificates are not looked at.", endpoint)
        return None, None
    if bool(certificate) != bool(key):
        raise StartError(
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY belong together",
            "name both files, or neither",
        )
    return authorities, (certificate, key) if certificate and key else None


def _compresses(environ: Mapping[str, str]) -> bool:
    coding = _of_traces(environ, "COMPRESSION").strip().lower()
    if coding not in _CODINGS:
        raise StartError(
            f"OTEL_EXPORTER_OTLP_COMPRESSION: {coding!r} is not written", "set it to gzip or none"
        )
    return _CODINGS[coding]


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise StartError(f"{name}: {text!r} is not a number above 0", f"the usual one is {default:g}")
    return float(text)


def _pairs(text: str, name: str) -> list[tuple[str, str]]:
    """`key=value,other=value`, percent-encoded."""
    pairs = [each.strip() for each in text.split(",") if each.strip()]
    if not all("=" in each for each in pairs):
        raise StartError(f"{name}: {text!r} are no pairs", "write them as key=value,other=value")
    split = (each.partition("=") for each in pairs)
    return [(unquote(key.strip()), unquote(value.strip())) for key, _, value in split]


def _resource(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    given = dict(_pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""), "OTEL_RESOURCE_ATTRIBUTES"))
    known = {
        "service.name": environ.get("OTEL_SERVICE_NAME")
        or given.get("service.name", "unknown_service:bridgehead"),
        "host.name": given.get("host.name", socket.gethostname()),
        "telemetry.sdk.name": "bridgehead",
        "telemetry.sdk.language": "rust",
    }
    return list({**given, **known}.items())


def _sampler(environ: Mapping[str, str]) -> tuple[str, str]:
    name = environ.get("OTEL_TRACES_SAMPLER", "").strip().lower() or "parentbased_always_on"
    argument = environ.get("OTEL_TRACES_SAMPLER_ARG", "").strip()
    if name not in _SAMPLERS:
        raise StartError(
            f"OTEL_TRACES_SAMPLER: {name!r} is none of ours", f"it is one of {', '.join(sorted(_SAMPLERS))}"
        )
    return name, argument


def _attacher() -> Attach | None:
    """What puts the server's span into a handler's context; nothing where an application cannot have any."""
    try:
        contexts: Any = importlib.import_module("opentelemetry.context")
        traces: Any = importlib.import_module("opentelemetry.trace")
    except ImportError:
        return None

    def attach(context: contextvars.Context, named: Named) -> None:
        trace, span, sampled, state = named
        parent = traces.SpanContext(
            trace_id=int(trace, 16),
            span_id=span,
            is_remote=True,
            trace_flags=traces.TraceFlags(int(sampled)),
            trace_state=traces.TraceState.from_header([state]) if state else None,
        )
        inside = traces.set_span_in_context(traces.NonRecordingSpan(parent))
        context.run(contexts.attach, inside)

    return attach
