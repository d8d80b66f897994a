"""What operators are told, and where: options, as a part of `Config`.

Not lines of logs, which are `config.py`'s.
"""

from dataclasses import dataclass

from bridgehead import address
from bridgehead.errors import StartError
from bridgehead.options import Shape, maybe, option, switch, text
from bridgehead.proxy_options import ProxyOptions

_NEW = "new: uvicorn has no such option"


def _request_path(value: object) -> str:
    path = text(value)
    if path.startswith("/") and path.isascii() and path.isprintable() and not set(path) & set(" ?#%"):
        return path
    raise StartError(f"{value!r} is no path of a request", "write it as /healthz")


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class Operations(ProxyOptions):
    """Where operators look."""

    admin: str | None = option(
        None,
        read=maybe(address.bindable),
        metavar="ADDRESS",
        anchor=lambda value, folder: address.socket_below(value, folder) if value else value,
        group="Operations",
        help="answer operators here: /livez, /readyz, /metrics, /status.json; see docs/operations.md",
        differs=_NEW,
    )
    otel: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="Operations",
        help="a span of each request, to where OTEL_EXPORTER_OTLP_ENDPOINT says; see docs/tracing.md",
        differs=_NEW,
    )
    health_path: str | None = option(
        None,
        read=maybe(_request_path),
        metavar="PATH",
        group="Operations",
        help="a path of the public port that says 200 while clients are welcome, else 503, without Python",
        differs=_NEW,
    )
