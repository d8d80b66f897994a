"""Applications whose framework makes a span of each request by itself, and that say whose child it is.

Run it: `serve traced_framework_app:starlette --otel`; `fastapi` is one that has to be asked for nothing.
"""

# ruff: noqa: ARG001 - the framework decides which arguments a handler has
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.opentelemetry import OpenTelemetryMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

trace.set_tracer_provider(TracerProvider())


def told() -> dict[str, str]:
    """The framework's own span of the request, and whose child that is."""
    span = trace.get_current_span()
    parent = getattr(span, "parent", None)
    return {
        "trace": f"{span.get_span_context().trace_id:032x}",
        "parent": f"{parent.span_id:016x}" if parent else "",
        "state": parent.trace_state.to_header() if parent else "",
    }


async def tell(request: Request) -> JSONResponse:
    return JSONResponse(told())


starlette = Starlette(routes=[Route("/", tell)], middleware=[Middleware(OpenTelemetryMiddleware)])
fastapi = FastAPI()


@fastapi.middleware("http")
async def outermost(request: Request, follow: object) -> JSONResponse:
    """FastAPI has further spans around a handler: here there is only that of the request."""
    return JSONResponse(told())
